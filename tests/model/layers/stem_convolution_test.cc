#include "model/layers/stem_convolution.h"

#include <array>
#include <vector>

#include "model/layers/convolution.h"
#include "tests/model/against_reference.h"

namespace sfmamba::layers {
namespace {

class StemConvolutionTest : public model::AgainstReference {
 protected:
  static Compared<StemConvolution> Make(int out, ops::Activation activation) {
    return Both([&](const auto& scope, const auto& ops) {
      return StemConvolution(
          Convolution::Take(scope, {/*in=*/3, out}, /*bias=*/false),
          ops::BatchNorm::Take(scope, out, /*eps=*/1e-4), activation,
          /*image_size=*/9, /*feeds_products=*/false, ops);
    });
  }
};

TEST_P(StemConvolutionTest, HalvesImages) {
  for (const int out : {5, 16}) {
    for (const ops::Activation activation :
         {ops::Activation::kRelu, ops::Activation::kRelu6}) {
      const auto stem = Make(out, activation);
      for (const auto& [images, height, width] :
           std::vector<std::array<int64_t, 3>>{{1, 1, 1}, {3, 9, 6}}) {
        // The values are large enough to reach ReLU6's limit of 6.
        const at::Tensor x =
            model::RandomValues("x", {images, 3, height, width}) * 5;
        ExpectNear(stem.tested.Forward(Map(x)), stem.reference.Forward(x));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, StemConvolutionTest,
                         testing::ValuesIn(model::TestedImplementations()),
                         model::NameOf);

}  // namespace
}  // namespace sfmamba::layers
