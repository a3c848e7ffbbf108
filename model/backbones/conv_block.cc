#include "model/backbones/conv_block.h"

namespace sfmamba::backbones {
namespace {

constexpr double kEps = 1e-5;

layers::Convolution MakeConvolution(
    const weights::StateDict::Scope& convolution,
    const weights::StateDict::Scope& norm, int width, int size,
    ops::Activation activation, const ops::Implementation& implementation) {
  layers::Convolution::Shape shape{width, width, /*stride=*/1, size};
  // Only the second convolution reads the first convolution's result. This
  // result may therefore have the type in which convolutions multiply. The
  // second convolution's result is added to the stage's map. The first
  // convolution is the one with an activation.
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
