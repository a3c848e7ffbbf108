#include "model/backbones/conv_block.h"

namespace sfmamba::backbones {
namespace {

constexpr double kEps = 1e-5;

layers::Convolution MakeConvolution(
    const weights::StateDict::Scope& convolution,
    const weights::StateDict::Scope& norm, int width, int size,
    const layers::LayerOptions& options) {
  const layers::Convolution::Shape shape{width,        width,
                                         /*stride=*/1, size,
                                         /*kernel=*/3, /*winograd=*/true};
  return layers::Convolution(
      shape, layers::Convolution::Take(convolution, shape, true),
      layers::BatchNorm::Take(norm, width, kEps), layers::Activation::kNone,
      options);
}

}  // namespace

ConvBlock::ConvBlock(const weights::StateDict::Scope& scope, int width,
                     int size, const layers::LayerOptions& options)
    : conv1_(MakeConvolution(scope.Sub("conv1"), scope.Sub("norm1"), width,
                             size, options)),
      conv2_(MakeConvolution(scope.Sub("conv2"), scope.Sub("norm2"), width,
                             size, options)) {}

void ConvBlock::Forward(at::Tensor& x) const {
  conv2_.AddTo(x, conv1_.ForwardGeluTanh(x));
}

}  // namespace sfmamba::backbones
