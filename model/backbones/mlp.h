#ifndef SFMAMBA_MODEL_BACKBONES_MLP_H_
#define SFMAMBA_MODEL_BACKBONES_MLP_H_

#include "ATen/core/Tensor.h"
#include "model/layers/linear.h"
#include "model/weights/state_dict.h"

namespace sfmamba::backbones {

// A linear layer "fc1" to four times the width, a GELU, and a linear layer
// "fc2" back to the width.
class Mlp {
 public:
  // `gamma` [width] is the layer scale of the result, or undefined.
  Mlp(const weights::StateDict::Scope& scope, int width,
      const at::Tensor& gamma, const ops::Implementation& implementation);

  // Computes residual += gamma * mlp(x). Both are [..., width].
  void AddTo(ops::Residual& residual, const at::Tensor& x) const {
    fc2_.AddTo(residual, fc1_.Forward(x));
  }

 private:
  layers::Linear fc1_, fc2_;
};

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_MODEL_BACKBONES_MLP_H_
