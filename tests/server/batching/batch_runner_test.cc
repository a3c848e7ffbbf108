#include "server/batching/batch_runner.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "gtest/gtest.h"

namespace sfmamba::batching {
namespace {

constexpr BatchLimits::Size kSize = {1, 1};
using Numbers = std::vector<int>;

// Answers an image with its first pixel. Pads each batch with one image.
class FakeContext : public model::ExecutionContext {
 public:
  absl::Status Run(absl::Span<const model::ModelInput> images,
                   model::RunInfo* info, Done done) override {
    sizes.push_back(static_cast<int>(images.size()));
    last = images.back();
    info->padded_images = static_cast<int>(images.size()) + 1;
    if (sizes.back() > most) return absl::ResourceExhaustedError("too many");
    std::vector<model::Result> results;
    for (const model::ModelInput& image : images) {
      if (fails(*image.pixels)) return absl::InternalError("failed");
      if (*image.pixels == large && images.size() > 1) {
        return absl::ResourceExhaustedError("too large");
      }
      model::Classification result;
      result.logits = {static_cast<float>(*image.pixels)};
      if (one_by_one) {
        done(std::move(result));
      } else {
        results.push_back(std::move(result));
      }
    }
    for (model::Result& result : results) done(std::move(result));
    return absl::OkStatus();
  }

  absl::Status Prepare(int /*min_images*/, int max_images) override {
    prepared.push_back(max_images);
    return max_images > most ? absl::ResourceExhaustedError("too many")
                             : absl::OkStatus();
  }

  Numbers sizes, prepared;  // The batch sizes of Run() and of Prepare().
  model::ModelInput last;   // The last image of the last Run().
  int large = -1;           // An image that fits into memory only alone.
  int most = 100;           // The largest batch that fits into memory.
  // True if each image is answered before the run ends.
  bool one_by_one = false;
  std::function<bool(int image)> fails = [](int) { return false; };
};

class BatchRunnerTest : public testing::Test {
 protected:
  BatchRunnerTest() {
    for (int i = 0; i < 64; ++i) pixels_.push_back(i);
    auto context = std::make_unique<FakeContext>();
    context_ = context.get();
    runner_ = std::make_unique<BatchRunner>(std::move(context), &limits_,
                                            [this] { return device_; });
  }

  // Runs `count` images and stores the indices of the failed images in failed_.
  // Expects exactly one answer for each image, which is the image's own result
  // or an error.
  void Run(int count, BatchLimits::Size size = kSize) {
    std::vector<model::ModelInput> images(count);
    for (int i = 0; i < count; ++i) images[i].pixels = &pixels_[i];
    Numbers answered(count);
    failed_.clear();
    progress_.assign(count, {});
    runner_->Run(size, images,
                 [&](size_t image, absl::StatusOr<model::Result> result,
                     const BatchRunner::Progress& progress) {
                   ++answered[image];
                   progress_[image] = progress;
                   if (!result.ok()) {
                     failed_.push_back(static_cast<int>(image));
                     error_ = result.status();
                     return;
                   }
                   EXPECT_EQ(std::get<model::Classification>(*result).logits[0],
                             image);
                 });
    EXPECT_EQ(answered, Numbers(count, 1));
  }

  std::vector<uint8_t> pixels_;
  BatchLimits limits_;
  absl::Status device_, error_;
  Numbers failed_;
  std::vector<BatchRunner::Progress> progress_;
  FakeContext* context_;
  std::unique_ptr<BatchRunner> runner_;
};

TEST_F(BatchRunnerTest, RunsABatchWhole) {
  Run(9);
  EXPECT_EQ(context_->sizes, Numbers({9}));
  EXPECT_TRUE(failed_.empty());
  EXPECT_EQ(progress_[8].images, 9);
  EXPECT_EQ(progress_[8].padded_images, 10);
  EXPECT_EQ(progress_[8].padding, 1);
}

// ---- Too little memory ----

TEST_F(BatchRunnerTest, HalvesABatchThatDoesNotFitAndRemembers) {
  context_->most = 3;
  Run(10);
  EXPECT_TRUE(failed_.empty());
  EXPECT_EQ(context_->sizes, Numbers({10, 5, 2, 2, 2, 2, 2}));
  EXPECT_EQ(progress_[9].images, 2);
  EXPECT_EQ(progress_[9].padded_images, 3);
  EXPECT_EQ(progress_[9].padding, 5);  // One image in each of five parts.
  context_->sizes.clear();
  Run(5);
  EXPECT_EQ(context_->sizes, Numbers({2, 2, 1}));
  context_->sizes.clear();
  Run(3, {1, 2});
  EXPECT_EQ(context_->sizes, Numbers({3})) << "another size has no limit";
}

TEST_F(BatchRunnerTest, WhatIsAnsweredBeforeMemoryRunsOutIsNotRunAgain) {
  context_->one_by_one = true;
  context_->large = 2;
  Run(4);
  EXPECT_TRUE(failed_.empty());
  EXPECT_EQ(context_->sizes, Numbers({4, 2, 1, 1}));
}

TEST_F(BatchRunnerTest, MeasuresBlackImagesOfTheSize) {
  int answers = 0;
  EXPECT_TRUE(
      runner_
          ->Measure({2, 3}, 4, [&answers](const model::Result&) { ++answers; })
          .ok());
  EXPECT_EQ(answers, 4);
  EXPECT_EQ(context_->sizes, Numbers({4}));
  EXPECT_EQ(context_->last.height, 2);
  EXPECT_EQ(context_->last.width, 3);
  context_->fails = [](int) { return true; };
  EXPECT_FALSE(runner_->Measure({2, 3}, 4, [](const model::Result&) {}).ok());
}

TEST_F(BatchRunnerTest, AnImageThatDoesNotFitAloneFails) {
  context_->most = 0;
  Run(2);
  EXPECT_EQ(failed_, Numbers({0, 1}));
  EXPECT_TRUE(absl::IsResourceExhausted(error_));
  EXPECT_EQ(context_->sizes, Numbers({2, 1, 1}));
}

TEST_F(BatchRunnerTest, PreparesForBatchesThatFit) {
  context_->most = 5;
  EXPECT_TRUE(runner_->Prepare(kSize, 16).ok());
  EXPECT_EQ(context_->prepared, Numbers({16, 8, 4}));
  Run(10);
  EXPECT_EQ(context_->sizes, Numbers({4, 4, 2}));
}

TEST_F(BatchRunnerTest, CannotPrepareIfOneImageDoesNotFit) {
  context_->most = 0;
  EXPECT_TRUE(absl::IsResourceExhausted(runner_->Prepare(kSize, 4)));
  EXPECT_EQ(context_->prepared, Numbers({4, 2, 1}));
}

// ---- Other failures ----

TEST_F(BatchRunnerTest, OneFailingImageFailsAlone) {
  for (const bool one_by_one : {false, true}) {
    context_->one_by_one = one_by_one;
    for (int culprit = 0; culprit < 8; ++culprit) {
      context_->fails = [&](int image) { return image == culprit; };
      Run(8);
      EXPECT_EQ(failed_, Numbers({culprit}));
    }
  }
}

TEST_F(BatchRunnerTest, ImagesThatAreDoneAreNotRunAgain) {
  context_->one_by_one = true;
  context_->fails = [](int image) { return image == 6; };
  Run(8);
  EXPECT_EQ(failed_, Numbers({6}));
  EXPECT_EQ(context_->sizes, Numbers({8, 1, 1}));
}

TEST_F(BatchRunnerTest, IfBothHalvesFailAllFailAndNoMoreIsTried) {
  context_->fails = [](int) { return true; };
  Run(8);
  EXPECT_EQ(failed_.size(), 8);
  EXPECT_EQ(error_, absl::InternalError("failed"));
  EXPECT_EQ(context_->sizes, Numbers({8, 4, 4}));
}

TEST_F(BatchRunnerTest, AFailingImageFailsAloneInAPartThatFits) {
  context_->most = 4;
  context_->fails = [](int image) { return image == 5; };
  Run(8);
  EXPECT_EQ(failed_, Numbers({5}));
  EXPECT_EQ(context_->sizes, Numbers({8, 4, 4, 2, 2, 1, 1}));
}

TEST_F(BatchRunnerTest, AFailedDeviceIsNotAsked) {
  device_ = absl::UnavailableError("broken");
  Run(4);
  EXPECT_EQ(failed_, Numbers({0, 1, 2, 3}));
  EXPECT_EQ(error_, device_);
  EXPECT_TRUE(context_->sizes.empty());
}

TEST_F(BatchRunnerTest, ADeviceThatFailsDuringARunEndsTheBatch) {
  context_->fails = [this](int) {
    device_ = absl::UnavailableError("broken");
    return true;
  };
  Run(4);
  EXPECT_EQ(failed_, Numbers({0, 1, 2, 3}));
  EXPECT_EQ(error_, device_);
  EXPECT_EQ(context_->sizes, Numbers({4}));
}

}  // namespace
}  // namespace sfmamba::batching
