#include "server/repository/run_memory.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/execution_context.h"
#include "model/vision_model.h"

namespace sfmamba::repository {
namespace {

using testing::HasSubstr;

constexpr int64_t kMega = 1000000;

// A model on a CPU. An image takes as much memory as `bytes` returns.
class Model : public model::VisionModel {
 public:
  using Bytes = std::function<int64_t(int64_t pixels)>;

  Model(const model::ModelConfig& config, Bytes bytes)
      : config_(config), bytes_(std::move(bytes)) {}

  int contexts() const override { return contexts_; }
  absl::StatusOr<std::unique_ptr<model::ExecutionContext>> MakeContext(
      int /*index*/) override {
    return std::make_unique<Context>(*this);
  }
  std::string context_device(int /*index*/) const override { return "cpu"; }
  const model::ModelConfig& config() const override { return config_; }
  model::Precision precision() const override { return config_.precision; }
  std::string device() const override { return "cpu"; }
  int fold_factor(int /*images*/) const override { return 1; }

  int contexts_ = 1;
  // The number of images that each of four threads runs at the same time.
  int images_at_once_ = 1;
  // The number of pixels of the largest image that was run.
  int64_t largest_ = 0;

 private:
  class Context : public model::ExecutionContext {
   public:
    explicit Context(Model& model) : model_(model) {}
    absl::Status Run(absl::Span<const model::ModelInput> /*images*/,
                     model::RunInfo* /*info*/, Done /*done*/) override {
      return absl::OkStatus();
    }
    absl::StatusOr<int64_t> MeasureMemory(
        int height, int width, int64_t most_bytes,
        const std::function<bool()>& stop) override {
      if (stop()) return absl::CancelledError("stopped");
      const int64_t bytes = model_.bytes_(int64_t{height} * width);
      if (bytes > most_bytes) return absl::ResourceExhaustedError("too much");
      model_.largest_ = std::max(model_.largest_, int64_t{height} * width);
      return bytes;
    }

    int ImagesInMemory(int images) const override {
      return std::clamp(images / 4 * 4, 1, 4 * model_.images_at_once_);
    }

   private:
    Model& model_;
  };

  const model::ModelConfig config_;
  const Bytes bytes_;
};

class RunMemoryTest : public testing::Test {
 protected:
  static model::ModelConfig Classifier(int size) {
    model::ModelConfig config;
    config.image_size = size;
    return config;
  }
  absl::StatusOr<BatchFit> Fit(Model& model, int64_t free,
                               int max_batch_size = 8) {
    BatchFitOptions options;
    options.free = free;
    options.max_batch_size = max_batch_size;
    options.memory = &memory_;
    options.stop = [this] { return stop_; };
    return FitBatch(model, options);
  }

  RunMemory memory_;
  bool stop_ = false;
};

int64_t Linear(int64_t pixels) { return 130 * pixels; }

TEST_F(RunMemoryTest, AModelThatFitsHasItsBatches) {
  Model model(Classifier(160), Linear);
  const auto fit = Fit(model, 100 * kMega);
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_EQ(fit->max_batch_size, 8);
  EXPECT_GT(fit->bytes, 4 * Linear(160 * 160));
}

TEST_F(RunMemoryTest, AnImageThatCannotFitIsRefusedWithTheFigureUnrun) {
  Model model(Classifier(16384), Linear);
  const absl::Status status = Fit(model, 8000 * kMega).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  // The size is 130 bytes for each of 16384 x 16384 pixels, plus a tenth.
  EXPECT_THAT(status.message(), HasSubstr("about 38.4 GB"));
  EXPECT_THAT(status.message(), HasSubstr("input.size 16384"));
  EXPECT_THAT(status.message(), HasSubstr("the 7.2 GB"));
  EXPECT_LE(model.largest_, 1024 * 1024);
}

TEST_F(RunMemoryTest, TooFewFreeBytesForTheInputsAreRefused) {
  Model model(Classifier(4096), Linear);
  const absl::Status status = Fit(model, 40 * kMega).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
}

TEST_F(RunMemoryTest, BatchesAreSmallerIfAnImageOnEachThreadDoesNotFit) {
  Model model(Classifier(1024), Linear);
  const auto fit = Fit(model, 400 * kMega);  // An image takes 150 MB.
  ASSERT_TRUE(fit.ok()) << fit.status();
  // In a batch of four, each of the four threads would run one image. Smaller
  // batches run one image at a time.
  EXPECT_EQ(fit->max_batch_size, 3);
}

TEST_F(RunMemoryTest, AThreadMayRunSeveralImagesAtOnce) {
  Model model(Classifier(1024), Linear);
  EXPECT_EQ(Fit(model, 700 * kMega, 16)->max_batch_size, 16);
  model.images_at_once_ = 4;
  // Four images fit into memory, and eight do not. A batch of up to 7 images
  // has at most four images in memory, one on each thread. From 8 images on,
  // each thread runs two images at the same time.
  EXPECT_EQ(Fit(model, 700 * kMega, 16)->max_batch_size, 7);
  EXPECT_EQ(Fit(model, 3000 * kMega, 16)->max_batch_size, 16);
}

TEST_F(RunMemoryTest, EachContextRunsABatch) {
  Model model(Classifier(1024), Linear);
  model.contexts_ = 4;
  EXPECT_FALSE(Fit(model, 500 * kMega).ok());
  EXPECT_TRUE(Fit(model, 900 * kMega).ok());
}

TEST_F(RunMemoryTest, WhatDoesNotGrowWithTheImageIsCountedOnce) {
  model::ModelConfig config;
  config.task = model::VisionTask::kDetection;
  config.short_side = 800;
  config.long_side = 1333;
  config.pad_multiple = 32;
  Model model(config,
              [](int64_t pixels) { return 100 * kMega + 100 * pixels; });
  EXPECT_TRUE(Fit(model, 350 * kMega).ok());
  EXPECT_FALSE(Fit(model, 200 * kMega).ok());
}

TEST_F(RunMemoryTest, ASmallImageThatTakesTooMuchIsRefused) {
  Model model(Classifier(160), [](int64_t) { return 10000 * kMega; });
  EXPECT_THAT(Fit(model, 1000 * kMega).status().message(),
              HasSubstr("more than"));
}

TEST_F(RunMemoryTest, OneLoadTakesMostOfTheMemoryAtATime) {
  Model model(Classifier(1024), Linear);
  const auto first = Fit(model, 800 * kMega);
  ASSERT_TRUE(first.ok());
  EXPECT_NE(first->most, nullptr);
  stop_ = true;  // This stops another call that is waiting.
  EXPECT_EQ(memory_.TakeMost([] { return true; }), nullptr);
  EXPECT_TRUE(absl::IsCancelled(Fit(model, 800 * kMega).status()));
}

// The fake model measures 0 bytes, as a model on a GPU does. Only the input
// must then fit, which has 3 * 16384 * 16384 bytes (805 MB).
TEST_F(RunMemoryTest, AModelWithoutTensorsHereFitsIfItsInputDoes) {
  Model model(Classifier(16384), [](int64_t) { return 0; });
  EXPECT_TRUE(Fit(model, 1000 * kMega).ok());
  EXPECT_FALSE(Fit(model, 700 * kMega).ok());
}

TEST_F(RunMemoryTest, ASmallImageWithoutLargeTensorsSaysNothingOfALargeOne) {
  Model model(Classifier(9000), [](int64_t pixels) {
    return pixels < 300 * 300 ? 0 : Linear(pixels);
  });
  EXPECT_FALSE(Fit(model, 3000 * kMega).ok());
}

TEST_F(RunMemoryTest, LoadsShareWhatIsFree) {
  const auto free = [] { return 100; };
  const auto go_on = [] { return false; };
  EXPECT_TRUE(absl::IsResourceExhausted(
      memory_.TakeForLoad(101, free, go_on).status()));
  auto first = memory_.TakeForLoad(60, free, go_on);
  ASSERT_TRUE(first.ok());
  const auto stopped = memory_.TakeForLoad(60, free, [] { return true; });
  ASSERT_TRUE(stopped.ok());
  EXPECT_EQ(*stopped, nullptr);
  first->reset();
  EXPECT_NE(*memory_.TakeForLoad(60, free, go_on), nullptr);
}

TEST_F(RunMemoryTest, TheLargestModelThatServesCounts) {
  RunMemory::Hold small = memory_.AddServed(1), large = memory_.AddServed(3);
  EXPECT_EQ(memory_.most_served(), 3);
  large.reset();
  EXPECT_EQ(memory_.most_served(), 1);
}

}  // namespace
}  // namespace sfmamba::repository
