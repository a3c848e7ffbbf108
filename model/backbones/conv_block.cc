#include "model/backbones/conv_block.h"

namespace sfmamba::backbones {
namespace {

constexpr double kEps = 1e-5;

layers::Convolution MakeConvolution(
    const weights::StateDict::Scope& convolution,
    const weights::StateDict::Scope& norm, int width, int size,
    ops::Activation activation, const ops::Implementation& implementation) {
  layers::Convolution::Shape shape{width, width, /*stride=*/1, size};
  // The first convolution has the activation, and only the second convolution
  // reads its result. The second one adds its result to the stage's map.
  shape.feeds_products = activation != ops::Activation::kNone;
  return layers::Convolution(
      shape, layers::Convolution::Take(convolution, shape, true),
      ops::BatchNorm::Take(norm, width, kEps), activation, implementation);
}

}  // namespace

ConvBlock::ConvBlock(const weights::StateDict::Scope& scope, int width,
                     int size, const ops::Implementation& implementation)
    : conv1_(MakeConvolution(scope.Sub("conv1"), scope.Sub("norm1"), width,
                             size, ops::Activation::kGeluTanh, implementation)),
      conv2_(MakeConvolution(scope.Sub("conv2"), scope.Sub("norm2"), width,
                             size, ops::Activation::kNone, implementation)) {}

void ConvBlock::Forward(at::Tensor& x) const {
  conv2_.AddTo(x, conv1_.Forward(x));
}

}  // namespace sfmamba::backbones
