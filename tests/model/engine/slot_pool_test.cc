#include "model/engine/slot_pool.h"

#include <thread>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "tests/testing/patience.h"

namespace sfmamba::engine {
namespace {

// A device that takes `most` images at a time; an image's answer is its first
// pixel.
class FakeSlot : public BatchSlot {
 public:
  explicit FakeSlot(size_t most) : most_(most) {}

  absl::Status Run(absl::Span<const model::ModelInput> images,
                   absl::Span<model::Result> results,
                   model::RunInfo* info) override {
    sizes.push_back(images.size());
    if (started != nullptr) started->Notify();
    if (proceed != nullptr)
      WaitFor(*proceed, "the test's leave to go on", kTestPatience);
    if (!status.ok()) return status;
    if (images.size() > most_) return absl::ResourceExhaustedError("too many");
    for (size_t i = 0; i < images.size(); ++i) {
      results[i] =
          model::Classification{{static_cast<float>(*images[i].pixels)}, {}};
    }
    info->padded_images += images.size();
    return absl::OkStatus();
  }
  absl::Status health() const override { return failure; }

  std::vector<size_t> sizes;  // Of the batches it was given.
  absl::Status status, failure;
  absl::Notification* started = nullptr;
  absl::Notification* proceed = nullptr;

 private:
  const size_t most_;
};

class SlotPoolTest : public testing::Test {
 protected:
  // Of one pool with slots that take `most` images each.
  SlotPool MakePool(const std::vector<size_t>& most) {
    std::vector<std::unique_ptr<BatchSlot>> slots;
    for (const size_t images : most) {
      auto slot = std::make_unique<FakeSlot>(images);
      fakes_.push_back(slot.get());
      slots.push_back(std::move(slot));
    }
    return SlotPool(std::move(slots));
  }

  std::vector<model::ModelInput> Images(size_t count, int height = 1) {
    for (size_t i = pixels_.size(); i < count; ++i) pixels_.push_back(i);
    std::vector<model::ModelInput> images(count);
    for (size_t i = 0; i < count; ++i) {
      images[i].height = height;
      images[i].width = 1;
      images[i].pixels = &pixels_[i];
    }
    return images;
  }

  absl::Status Run(SlotPool& pool,
                   const std::vector<model::ModelInput>& images) {
    results_.assign(images.size(), model::Result());
    info_ = {};
    return pool.Run(images, absl::MakeSpan(results_), &info_);
  }

  void ExpectResults() {
    for (size_t i = 0; i < results_.size(); ++i) {
      EXPECT_EQ(std::get<model::Classification>(results_[i]).logits,
                std::vector<float>{static_cast<float>(i)});
    }
  }

  std::vector<uint8_t> pixels_ = std::vector<uint8_t>(64);
  std::vector<FakeSlot*> fakes_;
  std::vector<model::Result> results_;
  model::RunInfo info_;

 private:
  void SetUp() override {
    for (size_t i = 0; i < pixels_.size(); ++i) pixels_[i] = i;
  }
};

using Sizes = std::vector<size_t>;

TEST_F(SlotPoolTest, RunsABatchWhole) {
  SlotPool pool = MakePool({100, 100});
  EXPECT_EQ(pool.size(), 2);
  EXPECT_EQ(Run(pool, Images(9)), absl::OkStatus());
  ExpectResults();
  EXPECT_EQ(fakes_[0]->sizes, Sizes({9}));
  EXPECT_EQ(Run(pool, {}), absl::OkStatus());
}

TEST_F(SlotPoolTest, SpreadsBatchesOverTheSlots) {
  SlotPool pool = MakePool({8, 8, 8});
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(Run(pool, Images(1 + i)), absl::OkStatus());
  }
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(fakes_[i]->sizes, Sizes({1 + i, 4 + i}));
  }
}

TEST_F(SlotPoolTest, RunsInEachSlotOnce) {
  SlotPool pool = MakePool({8, 2, 8});
  EXPECT_EQ(pool.RunInEachSlot(Images(4)), absl::OkStatus());
  EXPECT_EQ(fakes_[0]->sizes, Sizes({4}));
  EXPECT_EQ(fakes_[1]->sizes, Sizes({4, 2, 2}));
  EXPECT_EQ(fakes_[2]->sizes, Sizes({2, 2}));  // The limit holds for all.
}

TEST_F(SlotPoolTest, PreparingEndsWithTheFirstSlotThatFails) {
  SlotPool pool = MakePool({8, 0, 8});
  EXPECT_TRUE(absl::IsResourceExhausted(pool.RunInEachSlot(Images(1))));
  EXPECT_TRUE(fakes_[2]->sizes.empty());
}

TEST_F(SlotPoolTest, HalvesABatchThatDoesNotFitAndRemembers) {
  SlotPool pool = MakePool({3});
  EXPECT_EQ(Run(pool, Images(10)), absl::OkStatus());
  ExpectResults();
  EXPECT_EQ(fakes_[0]->sizes, Sizes({10, 5, 2, 2, 2, 2, 2}));
  EXPECT_EQ(info_.padded_images, 10);  // Of the parts that succeeded.
  fakes_[0]->sizes.clear();
  EXPECT_EQ(Run(pool, Images(5)), absl::OkStatus());
  ExpectResults();
  EXPECT_EQ(fakes_[0]->sizes, Sizes({2, 2, 1}));
}

TEST_F(SlotPoolTest, ALimitIsThatOfASize) {
  SlotPool pool = MakePool({3});
  EXPECT_EQ(Run(pool, Images(4)), absl::OkStatus());
  fakes_[0]->sizes.clear();
  EXPECT_EQ(Run(pool, Images(3, /*height=*/2)), absl::OkStatus());
  EXPECT_EQ(fakes_[0]->sizes, Sizes({3}));
}

TEST_F(SlotPoolTest, OneImageThatDoesNotFitIsAnError) {
  SlotPool pool = MakePool({0});
  EXPECT_TRUE(absl::IsResourceExhausted(Run(pool, Images(4))));
  EXPECT_EQ(fakes_[0]->sizes, Sizes({4, 2, 1}));
  EXPECT_EQ(pool.health(), absl::OkStatus());
}

TEST_F(SlotPoolTest, AFailedBatchHarmsNoLaterOne) {
  SlotPool pool = MakePool({8});
  fakes_[0]->status = absl::InternalError("a library's failure");
  EXPECT_EQ(Run(pool, Images(4)), fakes_[0]->status);
  fakes_[0]->status = absl::OkStatus();
  EXPECT_EQ(Run(pool, Images(4)), absl::OkStatus());
  EXPECT_EQ(fakes_[0]->sizes, Sizes({4, 4}));
}

TEST_F(SlotPoolTest, AFailedDeviceEndsThePool) {
  SlotPool pool = MakePool({8, 8});
  fakes_[0]->status = absl::InternalError("illegal address");
  fakes_[0]->failure = absl::InternalError("cuda:0: illegal address");
  const absl::Status status = Run(pool, Images(2));
  EXPECT_TRUE(absl::IsInternal(status));
  EXPECT_EQ(status.message(), "the device has failed: cuda:0: illegal address");
  EXPECT_EQ(pool.health(), fakes_[0]->failure);
  EXPECT_TRUE(absl::IsInternal(Run(pool, Images(2))));
  EXPECT_EQ(fakes_[0]->sizes.size() + fakes_[1]->sizes.size(), 1);
}

TEST_F(SlotPoolTest, TakesAnotherSlotWhileOneIsBusyAndElseWaits) {
  SlotPool pool = MakePool({8, 8});
  absl::Notification started, proceed;
  fakes_[0]->started = &started;
  fakes_[0]->proceed = &proceed;
  const std::vector<model::ModelInput> images = Images(2);
  std::vector<model::Result> first(2);
  std::thread busy([&] {
    model::RunInfo info;
    EXPECT_EQ(pool.Run(images, absl::MakeSpan(first), &info), absl::OkStatus());
  });
  WaitFor(started, "the first slot's run");
  EXPECT_EQ(Run(pool, images), absl::OkStatus());
  EXPECT_EQ(fakes_[1]->sizes, Sizes({2}));

  absl::Notification started_too, proceed_too;
  fakes_[1]->started = &started_too;
  fakes_[1]->proceed = &proceed_too;
  std::vector<model::Result> second(2), third(2);
  std::thread busy_too([&] {
    model::RunInfo info;
    EXPECT_EQ(pool.Run(images, absl::MakeSpan(second), &info),
              absl::OkStatus());
  });
  WaitFor(started_too, "the other slot's run");
  std::thread waiting([&] {
    model::RunInfo info;
    EXPECT_EQ(pool.Run(images, absl::MakeSpan(third), &info), absl::OkStatus());
  });
  fakes_[0]->started = nullptr;  // Taken: nobody reads them now.
  fakes_[0]->sizes.clear();
  proceed.Notify();
  Join(waiting,
       "the caller that waits for a slot");  // It got the slot that came free.
  EXPECT_EQ(fakes_[0]->sizes, Sizes({2}));
  proceed_too.Notify();
  Join(busy, "the first caller");
  Join(busy_too, "the second caller");
}

}  // namespace
}  // namespace sfmamba::engine
