#include "model/layers/conv_module.h"

#include <array>
#include <vector>

#include "tests/model/against_reference.h"

namespace sfmamba::layers {
namespace {

class ConvModuleTest : public model::AgainstReference {};

TEST_P(ConvModuleTest, ConvolvesNormalisesAndCutsOff) {
  for (const int kernel : {1, 3}) {
    const Convolution::Shape shape{/*in=*/7, /*out=*/11, /*stride=*/1,
                                   /*input_size=*/5, kernel};
    const auto module = Both([&](const auto& scope, const auto& ops) {
      return TakeConvModule(scope, shape, ops);
    });
    for (const auto& [images, height, width] :
         std::vector<std::array<int64_t, 3>>{{1, 1, 1}, {3, 7, 5}}) {
      const at::Tensor x = model::RandomValues("x", {images, 7, height, width});
      ExpectNear(module.tested.Forward(Map(x)), module.reference.Forward(x));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ConvModuleTest,
                         testing::ValuesIn(model::TestedImplementations()),
                         model::NameOf);

}  // namespace
}  // namespace sfmamba::layers
