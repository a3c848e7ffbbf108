#include "model/layers/linear.h"

namespace sfmamba::layers {

ops::Weights Linear::Take(const weights::StateDict::Scope& scope, int in,
                          int out, bool bias) {
  ops::Weights weights{scope.Take("weight", {out, in}), {}};
  if (bias) weights.bias = scope.Take("bias", {out});
  return weights;
}

}  // namespace sfmamba::layers
