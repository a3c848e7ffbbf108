// Compares the shapes listed for tuning with the shapes by which a running
// backbone chooses its plans.
#include <array>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "model/tuning/model_scans.h"
#include "tests/model/launch_plan.h"

namespace sfmamba::tuning {
namespace {

// Returns the names of the shapes, without duplicates. All blocks of a stage
// have the same scan.
std::vector<std::string> Names(const std::vector<ScanShape>& shapes) {
  std::vector<std::string> names;
  for (const ScanShape& shape : shapes) {
    const std::string name = ToString(shape);
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  return names;
}

// Compares the listed scans with the scans of batches of one and two images of
// the configured size.
void ExpectListsWhatRuns(const model::ModelConfig& config) {
  const bool ratio = config.resize == model::Resize::kKeepRatio;
  const int height =
      config.Padded(ratio ? config.short_side : config.image_size);
  const int width = config.Padded(ratio ? config.long_side : config.image_size);
  std::vector<std::string> run;
  for (const int images : {1, 2}) {
    for (const std::string& name :
         Names(model::ScansOf(config, images, height, width))) {
      run.push_back(name);
    }
  }
  EXPECT_EQ(Names(ScanShapes(config, /*max_batch=*/2)), run);
}

model::ModelConfig Config(const char* variant, int image_size) {
  model::ModelConfig config = *model::VariantConfig(variant);
  config.precision = model::Precision::kBFloat16;
  config.image_size = image_size;
  return config;
}

TEST(ScanShapesTest, FixedWindowsAreTheRuns) {
  for (const int size : {32, 224, 225, 300}) {
    SCOPED_TRACE(size);
    ExpectListsWhatRuns(Config("sf_mamba_t", size));
    ExpectListsWhatRuns(Config("mamba_vision_t", size));
    model::ModelConfig cut = Config("sf_mamba_t", size);
    cut.backbone.attention_windows = {7, 7};
    ExpectListsWhatRuns(cut);
  }
}

TEST(ScanShapesTest, WholeMapsAreTheRuns) {
  for (const int size : {32, 224, 225, 300}) {
    SCOPED_TRACE(size);
    model::ModelConfig config = Config("sf_mamba_t", size);
    config.backbone.window_mode = model::WindowMode::kFull;
    ExpectListsWhatRuns(config);
  }
}

// The map is rounded up to whole sub-windows, unless it fits into one
// sub-window.
TEST(ScanShapesTest, WholeMapsOfSubWindowsAreTheRuns) {
  for (const int size : {32, 224, 225, 300, 513}) {
    for (const std::array<int, 2>& sides :
         {std::array{4, 4}, std::array{10, 3}, std::array{14, 7},
          std::array{0, 4}, std::array{32, 5}}) {
      SCOPED_TRACE(size);
      SCOPED_TRACE(sides[0]);
      model::ModelConfig config = Config("sf_mamba_t", size);
      config.backbone.window_mode = model::WindowMode::kFull;
      config.backbone.attention_windows = sides;
      ExpectListsWhatRuns(config);
    }
  }
}

TEST(ScanShapesTest, DenseModelsAreTheRuns) {
  for (const auto task :
       {model::VisionTask::kDetection, model::VisionTask::kSegmentation}) {
    for (const char* variant : {"sf_mamba_t", "mamba_vision_t"}) {
      SCOPED_TRACE(variant);
      model::ModelConfig config = *model::VariantConfig(variant, task);
      ExpectListsWhatRuns(config);
      config.backbone.window_mode = model::WindowMode::kFull;
      // These are the "club" models' windows.
      config.backbone.attention_windows = {32, 32};
      ExpectListsWhatRuns(config);
    }
  }
}

// Another kernel, which has no plans to tune, runs VMamba's scan.
TEST(ScanShapesTest, VMambaHasNone) {
  ExpectListsWhatRuns(Config("vmamba_t_s2l5", 225));
}

}  // namespace
}  // namespace sfmamba::tuning
