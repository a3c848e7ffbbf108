#include "model/backbones/conv_block.h"

#include <array>
#include <vector>

#include "tests/model/against_reference.h"

namespace sfmamba::backbones {
namespace {

class ConvBlockTest : public model::AgainstReference {};

TEST_P(ConvBlockTest, AddsToTheMap) {
  constexpr int kWidth = 11;
  const auto block = Both([](const auto& scope, const auto& ops) {
    return ConvBlock(scope, kWidth, /*size=*/7, ops);
  });
  for (const auto& [images, height, width] :
       std::vector<std::array<int64_t, 3>>{{1, 1, 1}, {1, 2, 9}, {3, 7, 5}}) {
    const at::Tensor x =
        model::RandomValues("x", {images, kWidth, height, width});
    at::Tensor a = Map(x.clone()), b = x.clone();
    block.tested.Forward(a);
    block.reference.Forward(b);
    ExpectNear(a, b);
  }
}

INSTANTIATE_TEST_SUITE_P(All, ConvBlockTest,
                         testing::ValuesIn(model::TestedImplementations()),
                         model::NameOf);

}  // namespace
}  // namespace sfmamba::backbones
