// Compares small networks, which have the architectures of public weights, with
// results of the original code in fp64. See
// tests/testing/testdata/open_weights.
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/backbones/backbone.h"
#include "model/heads/classification_head.h"
#include "tests/model/against_reference.h"
#include "tests/testing/fixture.h"

namespace sfmamba::backbones {
namespace {

struct Case {
  const char* name;  // The name of the fixture.
  model::BackboneConfig backbone;
};

model::BackboneConfig MambaOut(const char* variant, std::array<int, 4> widths,
                               std::array<int, 4> depths,
                               std::array<int, 4> hidden,
                               std::array<int, 4> conv) {
  model::BackboneConfig config = model::VariantConfig(variant)->backbone;
  config.depths = depths;
  config.mamba_out.widths = widths;
  config.mamba_out.hidden = hidden;
  config.mamba_out.conv = conv;
  return config;
}

model::BackboneConfig EfficientVim(std::array<int, 3> widths,
                                   std::array<int, 3> depths,
                                   std::array<int, 3> states, bool distilled) {
  model::BackboneConfig config =
      model::VariantConfig("efficientvim_m1")->backbone;
  config.efficient_vim = {widths, depths, states, distilled};
  return config;
}

model::BackboneConfig VMamba(const char* variant, int dim,
                             std::array<int, 4> depths) {
  model::BackboneConfig config = model::VariantConfig(variant)->backbone;
  config.dim = dim;
  config.depths = depths;
  return config;
}

std::vector<Case> Cases() {
  return {
      {"mambaout_plain",
       MambaOut("mambaout_femto", {12, 24, 40, 48}, {1, 1, 2, 1},
                {32, 64, 106, 128}, {12, 24, 40, 48})},
      {"mambaout_original_names",
       MambaOut("mambaout_femto", {8, 16, 24, 32}, {1, 1, 1, 1},
                {21, 42, 64, 85}, {8, 16, 24, 32})},
      {"mambaout_rw_gelu",
       MambaOut("mambaout_base_tall_rw", {12, 24, 36, 48}, {1, 1, 1, 1},
                {30, 60, 90, 120}, {15, 30, 45, 60})},
      {"mambaout_rw_silu",
       MambaOut("mambaout_base_wide_rw", {12, 24, 36, 48}, {1, 1, 1, 1},
                {36, 72, 108, 144}, {18, 36, 54, 72})},
      {"efficientvim", EfficientVim({16, 24, 32}, {1, 1, 2}, {9, 4, 3}, false)},
      {"efficientvim_dist_odd",
       EfficientVim({16, 24, 40}, {1, 1, 1}, {9, 7, 5}, true)},
      {"efficientvim_upstream",
       EfficientVim({16, 24, 32}, {1, 1, 1}, {4, 3, 2}, false)},
      {"vmamba_s1", VMamba("vmamba_t_s1l8", 8, {1, 1, 2, 1})},
      {"vmamba_s2_odd", VMamba("vmamba_t_s2l5", 10, {1, 2, 1, 1})},
      {"vmamba_hf", VMamba("vmamba_t_s1l8", 8, {1, 1, 1, 1})},
      {"vmamba_old_names", VMamba("vmamba_t_s1l8", 8, {1, 1, 1, 1})},
  };
}

class OpenWeightsTest : public model::AgainstReference {
 protected:
  // Expects that the values differ by no more than a tolerance. In fp32, the
  // tolerance is a fraction of the expected values' standard deviation. In
  // bf16, fp16 and int8, it is a fraction of the largest expected value. In
  // these types, matrix products round their inputs. The rounding errors of
  // large inputs then also appear in small results.
  static void ExpectValues(const at::Tensor& actual,
                           const at::Tensor& expected) {
    const at::Tensor values = expected.to(at::kDouble);
    ASSERT_EQ(actual.sizes(), expected.sizes());
    const double difference =
        (actual.to(at::kDouble) - values).abs().max().item<double>();
    if (GetParam().products == at::kFloat) {
      EXPECT_LE(difference, 1e-5 * values.std().item<double>());
    } else {
      EXPECT_LE(difference,
                4 * Tolerance() * values.abs().max().item<double>());
    }
  }
};

TEST_P(OpenWeightsTest, MapsAndLogitsAreThoseOfTheOriginalCode) {
  for (const Case& each : Cases()) {
    SCOPED_TRACE(each.name);
    const Fixture weights_file(each.name, "open_weights");
    const Fixture expected(absl::StrCat(each.name, ".expected"),
                           "open_weights");
    weights::StateDict weights(weights_file.Weights(""));
    model::ModelConfig config;
    config.backbone = each.backbone;
    config.num_classes = 10;
    ASSERT_EQ(model::Validate(config), absl::OkStatus());
    const auto backbone =
        MakeBackbone(config.backbone, config.image_size, FeatureMaps::kAll,
                     weights.root(), tested());
    const heads::ClassificationHead head(config, weights.root(), tested());
    ASSERT_EQ(weights.Finish(), absl::OkStatus());
    const layers::Features maps =
        backbone->Forward(Map(expected["input"]), /*fold_rows=*/0);
    const bool has_embedding =
        each.backbone.architecture == model::Architecture::kEfficientVim;
    ASSERT_EQ(maps.size(), 4);
    for (size_t i = 0; i < maps.size() - has_embedding; ++i) {
      SCOPED_TRACE(i);
      ExpectValues(maps[i], expected[absl::StrCat("map", i)]);
    }
    ExpectValues(head.Answers(maps).narrow(1, 0, config.num_classes),
                 expected["logits"]);
  }
}

// Detectors and segmenters read the maps of all stages, each after a LayerNorm
// (the output norm).
TEST_P(OpenWeightsTest, NormedMapsAreThoseOfTheOriginalCode) {
  model::BackboneConfig config = VMamba("vmamba_t_s1l8", 8, {1, 1, 1, 1});
  config.output_norms = true;
  const Fixture weights_file("vmamba_backbone", "open_weights");
  const Fixture expected("vmamba_backbone.expected", "open_weights");
  weights::StateDict weights(weights_file.Weights(""));
  const auto backbone = MakeBackbone(
      config, /*image_size=*/64, FeatureMaps::kAll, weights.root(), tested());
  ASSERT_EQ(weights.Finish(), absl::OkStatus());
  const layers::Features maps =
      backbone->Forward(Map(expected["input"]), /*fold_rows=*/0);
  ASSERT_EQ(maps.size(), 4);
  for (size_t i = 0; i < maps.size(); ++i) {
    SCOPED_TRACE(i);
    ExpectValues(maps[i], expected[absl::StrCat("map", i)]);
  }
}

TEST_P(OpenWeightsTest, AnImagesMapsDoNotDependOnTheBatch) {
  const auto backbone =
      Both([&](const auto& scope, const auto& ops) {
        return MakeBackbone(VMamba("vmamba_t_s2l5", 16, {1, 1, 1, 1}), 64,
                            FeatureMaps::kAll, scope, ops);
      }).tested;
  const at::Tensor x = model::RandomValues("x", {3, 3, 45, 70});
  const layers::Features together = backbone->Forward(Map(x), 0);
  for (int image = 0; image < 3; ++image) {
    const layers::Features alone =
        backbone->Forward(Map(x.narrow(0, image, 1)), 0);
    for (size_t i = 0; i < alone.size(); ++i) {
      ExpectNear(together[i].narrow(0, image, 1), alone[i].to(at::kFloat));
    }
  }
}

// Maps of any size must be right. Errors are likely at a map's edges, and at
// the borders between blocks of columns, which a kernel computes together.
TEST_P(OpenWeightsTest, MapsOfAnySizeAreTheReferences) {
  for (const Case& each : Cases()) {
    SCOPED_TRACE(each.name);
    const auto backbone = Both([&](const auto& scope, const auto& ops) {
      return MakeBackbone(each.backbone, 64, FeatureMaps::kAll, scope, ops);
    });
    for (const auto& [height, width] : {std::pair{1, 1}, {31, 33}, {75, 107}}) {
      const at::Tensor x = model::RandomValues("x", {2, 3, height, width});
      const layers::Features own = backbone.tested->Forward(Map(x), 0);
      const layers::Features expected = backbone.reference->Forward(x, 0);
      ASSERT_EQ(own.size(), expected.size());
      for (size_t i = 0; i < own.size(); ++i) {
        if (GetParam().products == at::kFloat) {
          ExpectNear(own[i], expected[i]);
        } else {
          ExpectValues(own[i], expected[i]);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, OpenWeightsTest,
                         testing::ValuesIn(model::TestedImplementations()),
                         model::NameOf);

}  // namespace
}  // namespace sfmamba::backbones
