#ifndef SFMAMBA_MODEL_BACKBONES_CONV_BLOCK_H_
#define SFMAMBA_MODEL_BACKBONES_CONV_BLOCK_H_

#include "ATen/core/Tensor.h"
#include "model/layers/convolution.h"
#include "model/weights/state_dict.h"

namespace sfmamba::backbones {

// The residual block of stages 1 and 2, for maps [N, width, H, W]. It consists
// of a convolution, a BatchNorm, a GELU in the tanh form, another convolution
// and another BatchNorm. Source: MambaVision (arXiv 2407.08083), 3.2.
class ConvBlock {
 public:
  // `size` is the expected side of the map, which affects the choice of
  // algorithms.
  ConvBlock(const weights::StateDict::Scope& scope, int width, int size,
            const ops::Implementation& implementation);

  // Computes x += block(x). May write to x's memory, which no other tensor may
  // share.
  void Forward(at::Tensor& x) const;

 private:
  layers::Convolution conv1_, conv2_;
};

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_MODEL_BACKBONES_CONV_BLOCK_H_
