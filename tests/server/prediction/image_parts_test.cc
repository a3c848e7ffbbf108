#include "server/prediction/image_parts.h"

#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace sfmamba::prediction {
namespace {

class Counter final : public PartCollector {
 public:
  void Add(int /*i*/, model::Result /*result*/) override {
    if (throws) throw std::runtime_error("no memory");
    ++added;
  }
  std::unique_ptr<AnswerEncoder> MakeEncoder(
      const image::PictureFrame&) override {
    return nullptr;
  }

  bool throws = false;
  int added = 0;
};

class ImagePartsTest : public testing::Test {
 protected:
  std::shared_ptr<ImageParts> Make(int parts) {
    return std::make_shared<ImageParts>(
        parts, &counter_,
        [this](absl::Status status, std::vector<InputRun> runs) {
          ends_.push_back(std::move(status));
          runs_ = std::move(runs);
        });
  }

  Counter counter_;
  std::vector<absl::Status> ends_;
  std::vector<InputRun> runs_;
};

TEST_F(ImagePartsTest, TheLastToLetGoEndsThem) {
  auto parts = Make(2);
  auto other = parts;
  other->End(1, model::Detections(), {});
  other = nullptr;
  parts->End(0, model::Detections(), {});
  EXPECT_TRUE(ends_.empty());
  parts = nullptr;
  EXPECT_EQ(ends_, std::vector<absl::Status>{absl::OkStatus()});
  EXPECT_EQ(counter_.added, 2);
}

TEST_F(ImagePartsTest, WhatHappenedToEachPartIsTold) {
  auto parts = Make(2);
  InputRun first, second;
  first.span = 7;
  second.span = 8;
  parts->End(1, model::Detections(), second);
  parts->End(0, absl::InternalError("broken"), first);
  parts = nullptr;
  ASSERT_EQ(runs_.size(), 2u);
  EXPECT_EQ(runs_[0].span, 7);
  EXPECT_EQ(runs_[1].span, 8);
}

TEST_F(ImagePartsTest, ACauseIsKeptAndNotWhatItDropped) {
  auto parts = Make(3);
  parts->End(0, absl::CancelledError(), {});
  parts->End(1, absl::InternalError("first"), {});
  parts->End(2, absl::UnavailableError("second"), {});
  parts = nullptr;
  EXPECT_EQ(ends_, std::vector<absl::Status>{absl::InternalError("first")});
}

TEST_F(ImagePartsTest, APartThatIsDroppedFailsTheImage) {
  Make(1);
  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_EQ(ends_[0].code(), absl::StatusCode::kInternal);
}

TEST_F(ImagePartsTest, ACollectorThatThrowsFailsTheImage) {
  counter_.throws = true;
  Make(1)->End(0, model::Detections(), {});
  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_EQ(ends_[0].code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace sfmamba::prediction
