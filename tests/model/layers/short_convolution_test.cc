#include "model/layers/short_convolution.h"

#include <vector>

#include "ATen/ops/empty_like.h"
#include "tests/model/against_reference.h"

namespace sfmamba::layers {
namespace {

class ShortConvolutionTest : public model::AgainstReference {};

TEST_P(ShortConvolutionTest, ConvolvesAlongEachSequence) {
  constexpr int kChannels = 18;
  for (const ShortConvolution::Shape& shape :
       {ShortConvolution::Shape{kChannels},
        ShortConvolution::Shape{kChannels, /*taps=*/4, /*left=*/3,
                                /*bias=*/true}}) {
    const auto convolution = Both([&](const auto& scope, const auto& ops) {
      return ShortConvolution({ShortConvolution::Take(scope.Sub("x"), shape),
                               ShortConvolution::Take(scope.Sub("z"), shape)},
                              shape.left, ops);
    });
    // Each step convolves half of the channels, which lie in memory as a
    // mixer's input projection writes them.
    const auto steps = [&](const at::Tensor& x, const at::Tensor& y) {
      return std::vector<ShortConvolution::Step>{
          {x.narrow(2, 0, kChannels), y.narrow(2, 0, kChannels)},
          {x.narrow(2, kChannels, kChannels),
           y.narrow(2, kChannels, kChannels)}};
    };
    for (const int64_t rows : {1, 3}) {
      for (const int64_t length : {1, 2, 7, 14}) {
        const at::Tensor x =
            model::RandomValues("x", {rows, 14, 2 * kChannels});
        const at::Tensor own = x.to(GetParam().type);
        const at::Tensor a = at::empty_like(own), b = at::empty_like(x);
        convolution.tested.Forward(steps(own, a), length);
        convolution.reference.Forward(steps(x, b), length);
        ExpectNear(a, b);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ShortConvolutionTest,
                         testing::ValuesIn(model::TestedImplementations()),
                         model::NameOf);

}  // namespace
}  // namespace sfmamba::layers
