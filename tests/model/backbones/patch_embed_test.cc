#include "model/backbones/patch_embed.h"

#include <array>
#include <vector>

#include "tests/model/against_reference.h"

namespace sfmamba::backbones {
namespace {

class PatchEmbedTest : public model::AgainstReference {};

TEST_P(PatchEmbedTest, QuartersImages) {
  for (const int in_dim : {5, 8}) {
    const auto embed = Both([&](const auto& scope, const auto& ops) {
      return PatchEmbed(scope, in_dim, /*dim=*/11, /*image_size=*/17, ops);
    });
    for (const auto& [images, height, width] :
         std::vector<std::array<int64_t, 3>>{{1, 1, 1}, {3, 17, 10}}) {
      const at::Tensor x = model::RandomValues("x", {images, 3, height, width});
      ExpectNear(embed.tested.Forward(Map(x)), embed.reference.Forward(x));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, PatchEmbedTest,
                         testing::ValuesIn(model::TestedImplementations()),
                         model::NameOf);

}  // namespace
}  // namespace sfmamba::backbones
