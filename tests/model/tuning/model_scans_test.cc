#include "model/tuning/model_scans.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace sfmamba::tuning {
namespace {

std::vector<std::string> Names(const model::ModelConfig& config,
                               int max_batch) {
  std::vector<std::string> names;
  for (const ScanShape& shape : ScanShapes(config, max_batch)) {
    names.push_back(ToString(shape));
  }
  return names;
}

using Strings = std::vector<std::string>;

TEST(ScanShapesTest, AreThoseOfStages3And4InBatchesOfPowersOfTwo) {
  EXPECT_EQ(Names(*model::VariantConfig("sf_mamba_t"), 5),
            Strings({"fp32 160 channels 8 states 1 x 198",
                     "fp32 320 channels 8 states 1 x 51",
                     "fp32 160 channels 8 states 2 x 198",
                     "fp32 320 channels 8 states 2 x 51",
                     "fp32 160 channels 8 states 4 x 198",
                     "fp32 320 channels 8 states 4 x 51"}));
}

TEST(ScanShapesTest, AStemThatReplacesStage3LeavesStage4) {
  model::ModelConfig config = *model::VariantConfig("custom");
  config.backbone.stem = model::Stem::kEfficientNetLite0Stride32;
  config.backbone.dim = 24;
  EXPECT_EQ(Names(config, 2), Strings({"fp32 96 channels 8 states 1 x 51",
                                       "fp32 96 channels 8 states 2 x 51"}));
}

TEST(ScanShapesTest, FollowPrecisionAndTokens) {
  model::ModelConfig config = *model::VariantConfig("mamba_vision_b");
  config.precision = model::Precision::kFloat16;
  EXPECT_EQ(Names(config, 1), Strings({"fp16 256 channels 8 states 1 x 196",
                                       "fp16 512 channels 8 states 1 x 49"}));
  config.precision = model::Precision::kBFloat16;
  EXPECT_EQ(Names(config, 1)[0], "bf16 256 channels 8 states 1 x 196");
}

TEST(ScanShapesTest, WindowsAreSequences) {
  model::ModelConfig config = *model::VariantConfig("sf_mamba_t");
  config.image_size = 225;  // Maps of 15 x 15 and 8 x 8.
  EXPECT_EQ(Names(config, 1), Strings({"fp32 160 channels 8 states 4 x 198",
                                       "fp32 320 channels 8 states 4 x 51"}));
  config.backbone.window_mode = model::WindowMode::kFull;
  EXPECT_EQ(Names(config, 1), Strings({"fp32 160 channels 8 states 1 x 227",
                                       "fp32 320 channels 8 states 1 x 66"}));
}

TEST(ScanShapesTest, AWholeMapIsRoundedUpToSubWindows) {
  model::ModelConfig config = *model::VariantConfig("sf_mamba_t");
  config.image_size = 225;  // Maps of 15 x 15 and 8 x 8.
  config.backbone.window_mode = model::WindowMode::kFull;
  config.backbone.attention_windows = {4, 8};
  EXPECT_EQ(Names(config, 1), Strings({"fp32 160 channels 8 states 1 x 258",
                                       "fp32 320 channels 8 states 1 x 66"}));
}

TEST(ScanShapesTest, DenseModelsScanTheirPaddedPicture) {
  const model::ModelConfig config =
      *model::VariantConfig("sf_mamba_t", model::VisionTask::kDetection);
  // The largest picture has 800 x 1333 pixels and is padded to 800 x 1344. Its
  // maps of 50 x 84 and 25 x 42 tokens are padded to one window of 84 x 84 or
  // 42 x 42 tokens. Two auxiliary tokens are added to each window.
  EXPECT_EQ(Names(config, 1), Strings({"fp32 160 channels 8 states 1 x 7058",
                                       "fp32 320 channels 8 states 1 x 1766"}));
}

TEST(ScanShapesTest, VimHasOneKindOfScan) {
  EXPECT_EQ(Names(*model::VariantConfig("vim_s"), 1),
            Strings({"fp32 768 channels 16 states 1 x 197"}));
  EXPECT_EQ(Names(*model::VariantConfig("vim_s_uni_swap"), 1),
            Strings({"fp32 800 channels 16 states 1 x 199"}));
}

TEST(ScanShapesTest, SeveralModelsHaveEachScanOnce) {
  const model::ModelConfig t = *model::VariantConfig("sf_mamba_t");
  const model::ModelConfig s = *model::VariantConfig("sf_mamba_s");
  const size_t one = ScanShapes({{t, /*max_batch=*/2}}).size();
  EXPECT_EQ(one, 4);
  EXPECT_EQ(ScanShapes({{t, 2}, {t, 2}}).size(), one);
  EXPECT_EQ(ScanShapes({{t, 2}, {t, 8}}).size(), 8);
  EXPECT_EQ(ScanShapes({{t, 2}, {s, 2}}).size(), 8);
}

TEST(ScanShapesTest, AModelWithoutMambaBlocksHasNone) {
  model::ModelConfig config = *model::VariantConfig("sf_mamba_t");
  config.backbone.mamba = false;
  EXPECT_TRUE(ScanShapes(config, 8).empty());
}

}  // namespace
}  // namespace sfmamba::tuning
