#include <array>
#include <vector>

#include "ATen/TensorOperators.h"
#include "ATen/ops/equal.h"
#include "ATen/ops/layer_norm.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "model/backbones/backbone.h"
#include "model/ops/cpu/ops.h"
#include "model/ops/window_partition.h"
#include "model/weights/state_dict.h"
#include "tests/model/implementations.h"
#include "tests/model/testing.h"
#include "tests/testing/deterministic.h"
#include "tests/testing/fixture.h"

namespace sfmamba::heads {
namespace {

at::Tensor ChannelsLast(const at::Tensor& map) {
  return map.permute({0, 2, 3, 1});
}

// Returns the small model as a dense model's backbone, with windows of 8 and 4.
model::ModelConfig SmallPyramid() {
  model::ModelConfig config = model::SmallModel();
  config.backbone.windows = {8, 4};
  config.backbone.output_norms = true;
  return config;
}

TEST(PyramidTest, RegionsAreThoseOfTheReference) {
  const Fixture fixture("pyramid");
  const at::Tensor x = ChannelsLast(fixture["x"]);
  const at::Tensor sides = fixture["window"];
  const int64_t region = sides[0].item<int64_t>();
  const int64_t sub = sides[1].item<int64_t>();
  const ops::WindowGrid grid{x.size(1), x.size(2), region, region};
  const at::Tensor regions = ops::WindowPartition(x, grid);
  EXPECT_TRUE(at::equal(regions, fixture["windows"]));
  EXPECT_TRUE(at::equal(ops::WindowReverse(regions * 2 + 1, grid),
                        ChannelsLast(fixture["reversed_2x_plus_1"])));

  const ops::WindowGrid sub_grid{region, region, sub, sub};
  const at::Tensor subs = ops::WindowPartition(
      regions.view({-1, region, region, x.size(3)}), sub_grid);
  EXPECT_TRUE(at::equal(subs, fixture["sub_windows"]));
  EXPECT_TRUE(
      at::equal(ops::WindowReverse(subs * 3, sub_grid).view(regions.sizes()),
                fixture["sub_reversed_3x"]));
}

TEST(PyramidTest, OutputNormIsTheReferences) {
  const Fixture fixture("pyramid");
  at::Tensor x = ChannelsLast(fixture["x"]).contiguous();
  const at::Tensor y = ops::LayerNorm(x, fixture["outnorm.weight"],
                                      fixture["outnorm.bias"], 1e-5f,
                                      /*length=*/1, /*swap=*/false, at::kFloat);
  EXPECT_LE(RelativeError(y, ChannelsLast(fixture["outnorm.out"])), 1e-4);
}

TEST(PyramidTest, TheNextStageSeesTheMapWithoutItsNorm) {
  const at::Tensor images = DeterministicImages({2, 3, 96, 80});
  const model::ModelConfig config = SmallPyramid();
  model::ModelConfig plain = config;
  plain.backbone.output_norms = false;
  const std::vector<at::Tensor> maps = model::StageMaps(plain, images);
  const std::vector<at::Tensor> normed = model::StageMaps(config, images);
  for (int stage = 0; stage < 4; ++stage) {
    const std::string key = absl::StrCat("outnorm", stage);
    const int64_t width = maps[stage].size(1);
    const at::Tensor expected = at::layer_norm(
        ChannelsLast(maps[stage]), {width},
        DeterministicParameter(key + ".weight", {width}),
        DeterministicParameter(key + ".bias", {width}), /*eps=*/1e-5);
    EXPECT_LE(RelativeError(ChannelsLast(normed[stage]), expected), 1e-5);
    // The heads' convolutions read maps that are channels-last in memory.
    EXPECT_TRUE(normed[stage].is_contiguous(at::MemoryFormat::ChannelsLast));
  }
}

TEST(PyramidTest, CpuAndReferenceAgreeAtOddSizes) {
  model::ModelConfig config = SmallPyramid();
  for (const int sub : {0, 4}) {
    config.backbone.attention_windows[0] = sub;
    for (const auto& [height, width] :
         std::vector<std::array<int, 2>>{{1, 1}, {97, 33}, {100, 210}}) {
      const at::Tensor images = DeterministicImages({1, 3, height, width});
      const std::vector<at::Tensor> fused = model::StageMaps(config, images);
      const std::vector<at::Tensor> plain =
          model::StageMaps(config, images, model::Reference());
      int64_t rows = (height + 1) / 2, columns = (width + 1) / 2;
      for (int stage = 0; stage < 4; ++stage) {
        rows = (rows + 1) / 2;
        columns = (columns + 1) / 2;
        EXPECT_EQ(fused[stage].sizes(),
                  at::IntArrayRef({1, 16 << stage, rows, columns}));
        EXPECT_LE(RelativeError(fused[stage], plain[stage]), 1e-5) << stage;
      }
    }
  }
}

// If a map has only one window, the last attention block skips the window's
// padding rows, which are below the map. If attention is limited to
// sub-windows, the block computes all rows. The sub-windows in this test are as
// large as the windows, so they have no other effect. The maps must therefore
// be equal with and without sub-windows.
TEST(PyramidTest, WhatIsCutOffNeedNoLastBlock) {
  for (const model::Tokens tokens :
       {model::Tokens::kData, model::Tokens::kNone}) {
    model::ModelConfig config = SmallPyramid();
    config.backbone.tokens = tokens;
    model::ModelConfig whole = config;
    whole.backbone.attention_windows = config.backbone.windows;
    for (const auto& [height, width] :
         std::vector<std::array<int, 2>>{{96, 80}, {40, 128}, {130, 100}}) {
      const at::Tensor images = DeterministicImages({2, 3, height, width});
      const std::vector<at::Tensor> maps = model::StageMaps(config, images);
      const std::vector<at::Tensor> expected = model::StageMaps(whole, images);
      for (int stage = 2; stage < 4; ++stage) {
        EXPECT_LE(RelativeError(maps[stage], expected[stage]), 1e-5)
            << height << "x" << width << ", stage " << stage;
      }
    }
  }
}

TEST(PyramidTest, RegionsAreSequencesOfTheirOwn) {
  const model::ModelConfig config = SmallPyramid();
  weights::StateDict weights(DeterministicParameter);
  const auto backbone = backbones::MakeBackbone(
      config.backbone, config.image_size, backbones::FeatureMaps::kAll,
      weights.root(), model::Cpu());
  // Maps of 6 x 8 tokens have windows of 8 x 8, and maps of 3 x 4 tokens have
  // windows of 4 x 4.
  EXPECT_EQ(backbone->Sequences(2, 96, 128), (std::vector<int64_t>{2, 2}));
  // The maps have 8 x 9 and 4 x 5 tokens.
  EXPECT_EQ(backbone->Sequences(1, 128, 144), (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(backbone->Sequences(1, 129, 300), (std::vector<int64_t>{6, 6}));
}

}  // namespace
}  // namespace sfmamba::heads
