#ifndef SFMAMBA_MODEL_BACKBONES_CONV_BLOCK_H_
#define SFMAMBA_MODEL_BACKBONES_CONV_BLOCK_H_

#include "ATen/core/Tensor.h"
#include "model/layers/convolution.h"
#include "model/weights/state_dict.h"

namespace sfmamba::backbones {

// The residual block of stages 1 and 2, on maps [N, width, H, W]: convolution,
// BatchNorm, GELU in the tanh form, convolution, BatchNorm.
// Source: MambaVision (arXiv 2407.08083), 3.2.
class ConvBlock {
 public:
  // `size` is the expected side of the map, a hint.
  ConvBlock(const weights::StateDict::Scope& scope, int width, int size,
            const ops::Implementation& implementation);

  // x += block(x). May write to x's memory, which no other tensor may share.
  void Forward(at::Tensor& x) const;

 private:
  layers::Convolution conv1_, conv2_;
};

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_MODEL_BACKBONES_CONV_BLOCK_H_
