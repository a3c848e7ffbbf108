#ifndef SFMAMBA_MODEL_BACKBONES_MLP_H_
#define SFMAMBA_MODEL_BACKBONES_MLP_H_

#include "ATen/core/Tensor.h"
#include "model/layers/linear.h"
#include "model/weights/state_dict.h"

namespace sfmamba::backbones {

// A layer "fc1" to four times the width, GELU, and a layer "fc2" back.
class Mlp {
 public:
  // `gamma` [width] is the layer scale of the result, or undefined.
  Mlp(const weights::StateDict::Scope& scope, int width,
      const at::Tensor& gamma, const ops::Implementation& implementation);

  // residual += gamma * mlp(x). Both are [..., width].
  void AddTo(ops::Residual& residual, const at::Tensor& x) const {
    fc2_.AddTo(residual, fc1_.Forward(x));
  }

 private:
  layers::Linear fc1_, fc2_;
};

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_MODEL_BACKBONES_MLP_H_
