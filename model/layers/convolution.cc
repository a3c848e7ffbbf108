#include "model/layers/convolution.h"

namespace sfmamba::layers {

Convolution::Convolution(const Shape& shape, const ops::Weights& weights,
                         const std::optional<ops::BatchNorm>& norm,
                         ops::Activation activation,
                         const ops::Implementation& implementation)
    : op_(implementation.MakeConvolution({weights, norm, activation,
                                          shape.stride, shape.groups,
                                          shape.input_size, shape.is_output,
                                          shape.maps, shape.feeds_products})) {}

ops::Weights Convolution::Take(const weights::StateDict::Scope& scope,
                               const Shape& shape, bool bias) {
  ops::Weights weights{scope.Take("weight", {shape.out, shape.in / shape.groups,
                                             shape.kernel, shape.kernel}),
                       {}};
  if (bias) weights.bias = scope.Take("bias", {shape.out});
  return weights;
}

}  // namespace sfmamba::layers
