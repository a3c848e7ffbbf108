#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ATen/ops/empty.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "model/config.h"
#include "model/engine/make_vision_model.h"
#include "model/weights/state_dict.h"

namespace sfmamba::heads {
namespace {

using Shapes = std::map<std::string, std::vector<int64_t>>;

// Returns the keys and shapes of a segmenter's parameters.
Shapes TakenBy(const model::ModelConfig& config) {
  Shapes taken;
  weights::StateDict weights(
      [&](const std::string& key, at::IntArrayRef shape) {
        EXPECT_TRUE(taken.emplace(key, shape.vec()).second)
            << key << " is taken twice";
        // The tensor is never written to, so even the largest model takes no
        // memory.
        return at::empty(shape, c10::kFloat);
      });
  const auto model =
      engine::MakeVisionModel(config, weights, {/*reference=*/true});
  EXPECT_TRUE(model.ok()) << model.status();
  return taken;
}

// Returns the number of entries in a checkpoint. These are the parameters, and
// a counter for each running mean.
int Entries(const Shapes& shapes, const std::string& prefix) {
  int entries = 0;
  for (const auto& [key, shape] : shapes) {
    if (!absl::StartsWith(key, prefix)) continue;
    entries += absl::EndsWith(key, ".running_mean") ? 2 : 1;
  }
  return entries;
}

int64_t Parameters(const Shapes& shapes, const std::string& prefix) {
  int64_t parameters = 0;
  for (const auto& [key, shape] : shapes) {
    if (!absl::StartsWith(key, prefix)) continue;
    if (absl::StrContains(key, ".running_")) continue;
    int64_t size = 1;
    for (const int64_t dimension : shape) size *= dimension;
    parameters += size;
  }
  return parameters;
}

struct Case {
  const char* variant;
  // Includes the 8 entries of the auxiliary head, which is not loaded.
  int entries;
  int64_t backbone, decode_head;  // Numbers of parameters.
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.variant;
}

class SegmenterKeysTest : public testing::TestWithParam<Case> {};

TEST_P(SegmenterKeysTest, AreAsManyAsStated) {
  const Case& c = GetParam();
  const Shapes shapes = TakenBy(
      *model::VariantConfig(c.variant, model::VisionTask::kSegmentation));
  EXPECT_EQ(Entries(shapes, "") + 8, c.entries);
  EXPECT_EQ(Entries(shapes, "decode_head."), 74);
  EXPECT_EQ(Parameters(shapes, "backbone."), c.backbone);
  EXPECT_EQ(Parameters(shapes, "decode_head."), c.decode_head);
  EXPECT_EQ(Parameters(shapes, ""), c.backbone + c.decode_head);
}

INSTANTIATE_TEST_SUITE_P(
    Variants, SegmenterKeysTest,
    testing::Values(Case{"mamba_vision_t", 335, 31'154'368, 30'588'054},
                    Case{"mamba_vision_s", 368, 49'372'928, 31'497'366},
                    Case{"mamba_vision_b", 439, 96'662'080, 33'315'990},
                    Case{"mamba_vision_l3_512_21k", 684, 737'525'056,
                         40'590'486},
                    Case{"sf_mamba_t", 335, 31'154'368, 30'588'054},
                    Case{"vmamba_t_s1l8", 362, 29'481'408, 31'497'366},
                    Case{"vmamba_t_s2l5", 308, 29'938'176, 31'497'366},
                    Case{"vmamba_s_s2l15", 488, 49'380'096, 31'497'366},
                    Case{"vmamba_b_s2l15", 488, 87'534'592, 33'315'990}),
    [](const auto& info) { return std::string(info.param.variant); });

TEST(SegmenterKeysTest, AreTheReferences) {
  const Shapes shapes = TakenBy(
      *model::VariantConfig("sf_mamba_t", model::VisionTask::kSegmentation));
  Shapes expected;
  const auto module = [&](const std::string& name,
                          const std::vector<int64_t>& weight) {
    const std::string key = "decode_head." + name;
    expected[key + ".conv.weight"] = weight;
    for (const char* end : {"weight", "bias", "running_mean", "running_var"}) {
      expected[absl::StrCat(key, ".bn.", end)] = {weight[0]};
    }
  };
  for (int i = 0; i < 4; ++i) {
    module(absl::StrCat("psp_modules.", i, ".1"), {512, 640, 1, 1});
  }
  for (int i = 0; i < 3; ++i) {
    module(absl::StrCat("lateral_convs.", i), {512, 80 << i, 1, 1});
    module(absl::StrCat("fpn_convs.", i), {512, 512, 3, 3});
  }
  module("bottleneck", {512, 640 + 2048, 3, 3});
  module("fpn_bottleneck", {512, 2048, 3, 3});
  expected["decode_head.conv_seg.weight"] = {150, 512, 1, 1};
  expected["decode_head.conv_seg.bias"] = {150};
  for (int i = 0; i < 4; ++i) {
    for (const char* end : {"weight", "bias"}) {
      expected[absl::StrCat("backbone.outnorm", i, ".", end)] = {80 << i};
    }
  }
  for (const auto& [key, shape] : expected) {
    ASSERT_EQ(shapes.count(key), 1) << key;
    EXPECT_EQ(shapes.at(key), shape) << key;
  }
  EXPECT_EQ(shapes.count("backbone.norm.weight"), 0);
  EXPECT_EQ(shapes.count("head.weight"), 0);
}

}  // namespace
}  // namespace sfmamba::heads
