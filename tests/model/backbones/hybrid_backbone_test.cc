#include "model/backbones/hybrid_backbone.h"

#include <array>
#include <vector>

#include "model/weights/state_dict.h"
#include "tests/model/against_reference.h"
#include "tests/model/backbones/small_backbone.h"
#include "tests/model/implementations.h"
#include "tests/model/testing.h"
#include "tests/testing/deterministic.h"

namespace sfmamba::backbones {
namespace {

class HybridBackboneTest : public model::AgainstReference {
 protected:
  static void ExpectEqualFeatures(const model::BackboneConfig& config) {
    const auto backbone = Both([&](const auto& scope, const auto& ops) {
      return HybridBackbone(config, /*image_size=*/97, FeatureMaps::kAll, scope,
                            ops);
    });
    for (const auto& [images, height, width] :
         std::vector<std::array<int64_t, 3>>{{1, 1, 1}, {3, 97, 65}}) {
      const at::Tensor x = model::RandomValues("x", {images, 3, height, width});
      const layers::Features own = backbone.tested.Forward(Map(x), 0);
      const layers::Features expected = backbone.reference.Forward(x, 0);
      ASSERT_EQ(own.size(), 4);
      for (int stage = 0; stage < 4; ++stage) {
        SCOPED_TRACE(stage);
        ExpectNear(own[stage], expected[stage]);
      }
    }
  }
};

TEST_P(HybridBackboneTest, GivesFourMaps) {
  model::BackboneConfig config = SmallBackbone();
  for (const bool dense : {false, true}) {
    config.output_norms = dense;
    config.layer_scale = dense;
    ExpectEqualFeatures(config);
  }
}

TEST_P(HybridBackboneTest, GivesTheTrunksMapsAndItsOwn) {
  model::BackboneConfig config = SmallBackbone();
  config.stem = model::Stem::kEfficientNetLite0Stride32;
  config.dim = 24;
  config.depths = {0, 0, 0, 2};
  for (const bool dense : {false, true}) {
    config.output_norms = dense;
    ExpectEqualFeatures(config);
  }
}

TEST(HybridBackboneSequencesTest, AreThoseOfTheStagesOfTokens) {
  for (const bool longer : {false, true}) {
    model::ModelConfig config =
        longer ? model::LiteStride32Model() : model::LiteModel();
    weights::StateDict weights(DeterministicParameter);
    const HybridBackbone backbone(config.backbone, config.image_size,
                                  FeatureMaps::kAll, weights.root(),
                                  model::Reference());
    // There are three images. In stage 3, a map of 21 x 11 tokens has 3 x 2
    // windows of 10 x 10 tokens. In stage 4, a map of 11 x 6 tokens has 3 x 2
    // windows of 5 x 5 tokens. If `longer`, the EfficientNet trunk also
    // replaces stage 3, so only stage 4 has sequences.
    const std::vector<int64_t> expected =
        longer ? std::vector<int64_t>{3 * 3 * 2}
               : std::vector<int64_t>{3 * 3 * 2, 3 * 3 * 2};
    EXPECT_EQ(backbone.Sequences(3, 330, 170), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(All, HybridBackboneTest,
                         testing::ValuesIn(model::TestedImplementations()),
                         model::NameOf);

}  // namespace
}  // namespace sfmamba::backbones
