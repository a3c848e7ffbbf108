#ifndef SFMAMBA_TESTS_MODEL_DEVICE_MODEL_FIXTURE_H_
#define SFMAMBA_TESTS_MODEL_DEVICE_MODEL_FIXTURE_H_

#include <vector>

#include "gtest/gtest.h"
#include "model/vision_model.h"
#include "tests/model/emulated_device.h"
#include "tests/model/testing.h"
#include "tests/testing/run_model.h"

namespace sfmamba::model {

constexpr int kSide = 32;  // Height and width of the images.

inline ModelConfig Config() {
  ModelConfig config = SmallModel();
  config.image_size = kSide;
  return config;
}

inline ModelOptions OnGpu() {
  ModelOptions options;
  options.gpus = {0};
  options.slots_per_gpu = 2;
  return options;
}

// Prepares images for a small classifier on an emulated GPU, and reads what the
// GPU recorded.
class DeviceModelTest : public testing::Test {
 protected:
  DeviceModelTest() : pixels_(size_t{3} * kSide * kSide) {
    for (size_t i = 0; i < pixels_.size(); ++i) pixels_[i] = 7 * i;
    recorded_ = emulated::graphs_recorded();
    replayed_ = emulated::graphs_replayed();
  }
  ~DeviceModelTest() override {
    emulated::RefuseToRecord(0);
    emulated::LimitMemory(0);
    for (const int gpu : {0, 1}) emulated::BreakDevice(false, gpu);
    EXPECT_EQ(emulated::graphs_alive(), 0);
    EXPECT_EQ(emulated::streams_alive(), 0);
  }

  std::vector<ModelInput> Images(int count) const {
    ModelInput input;
    input.height = input.width = kSide;
    input.pixels = pixels_.data();
    return std::vector<ModelInput>(count, input);
  }
  // Returns one image's logits, computed on the CPU.
  std::vector<float> Expected() const {
    return Of(RunBatch(*MakeModel(Config()), Images(1)))[0];
  }
  static std::vector<std::vector<float>> Of(
      const absl::StatusOr<std::vector<Result>>& results) {
    EXPECT_TRUE(results.ok()) << results.status();
    std::vector<std::vector<float>> logits;
    if (!results.ok()) return logits;
    for (const Result& result : *results) {
      logits.push_back(std::get<Classification>(result).logits);
    }
    return logits;
  }
  void ExpectRight(ExecutionContext& context, int count,
                   RunInfo* info = nullptr) {
    const auto logits = Of(RunBatch(context, Images(count), info));
    ASSERT_EQ(logits.size(), count);
    const std::vector<float> expected = Expected();
    for (const std::vector<float>& own : logits) {
      EXPECT_LE(LargestDifference(own, expected), 1e-4);
    }
  }

  int recorded() const { return emulated::graphs_recorded() - recorded_; }
  int replayed() const { return emulated::graphs_replayed() - replayed_; }

  std::vector<uint8_t> pixels_;

 private:
  int recorded_, replayed_;
};

}  // namespace sfmamba::model

#endif  // SFMAMBA_TESTS_MODEL_DEVICE_MODEL_FIXTURE_H_
