#include "model/backbones/conv_block.h"

namespace sfmamba {
namespace {

constexpr double kEps = 1e-5;

Convolution MakeConvolution(const StateDict::Scope& convolution,
                            const StateDict::Scope& norm, int width, int size,
                            const LayerOptions& options) {
  const Convolution::Shape shape{width,        width,
                                 /*stride=*/1, size,
                                 /*kernel=*/3, /*winograd=*/true};
  return Convolution(shape, Convolution::Take(convolution, shape, true),
                     BatchNorm::Take(norm, width, kEps), Activation::kNone,
                     options);
}

}  // namespace

ConvBlock::ConvBlock(const StateDict::Scope& scope, int width, int size,
                     const LayerOptions& options)
    : conv1_(MakeConvolution(scope.Sub("conv1"), scope.Sub("norm1"), width,
                             size, options)),
      conv2_(MakeConvolution(scope.Sub("conv2"), scope.Sub("norm2"), width,
                             size, options)) {}

void ConvBlock::Forward(at::Tensor& x) const {
  conv2_.AddTo(x, conv1_.ForwardGeluTanh(x));
}

}  // namespace sfmamba
