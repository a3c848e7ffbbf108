#include "model/backbones/hybrid_backbone.h"

#include <array>
#include <vector>

#include "tests/model/against_reference.h"
#include "tests/model/backbones/small_backbone.h"

namespace sfmamba::backbones {
namespace {

class HybridBackboneTest : public model::AgainstReference {
 protected:
  static void ExpectEqualFeatures(const model::BackboneConfig& config) {
    const auto backbone = Both([&](const auto& scope, const auto& ops) {
      return HybridBackbone(config, /*image_size=*/97, scope, ops);
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

INSTANTIATE_TEST_SUITE_P(All, HybridBackboneTest,
                         testing::ValuesIn(model::TestedImplementations()),
                         model::NameOf);

}  // namespace
}  // namespace sfmamba::backbones
