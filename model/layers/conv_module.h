#ifndef SFMAMBA_MODEL_LAYERS_CONV_MODULE_H_
#define SFMAMBA_MODEL_LAYERS_CONV_MODULE_H_

#include "model/layers/convolution.h"
#include "model/ops/weight_transforms.h"
#include "model/weights/state_dict.h"

namespace sfmamba::layers {

constexpr double kConvModuleEps = 1e-5;

// Takes the usual layer of heads from `scope`: a convolution "conv" without
// bias, a BatchNorm "bn" and a ReLU.
inline Convolution TakeConvModule(const weights::StateDict::Scope& scope,
                                  const Convolution::Shape& shape,
                                  const ops::Implementation& implementation) {
  return Convolution(
      shape, Convolution::Take(scope.Sub("conv"), shape, /*bias=*/false),
      ops::BatchNorm::Take(scope.Sub("bn"), shape.out, kConvModuleEps),
      ops::Activation::kRelu, implementation);
}

}  // namespace sfmamba::layers

#endif  // SFMAMBA_MODEL_LAYERS_CONV_MODULE_H_
