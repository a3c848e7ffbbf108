#ifndef SFMAMBA_MODEL_LAYERS_WEIGHT_TRANSFORMS_H_
#define SFMAMBA_MODEL_LAYERS_WEIGHT_TRANSFORMS_H_

#include "ATen/core/Tensor.h"
#include "model/weights/state_dict.h"

namespace sfmamba::layers {

// Load-time rewrites. They are exact in real arithmetic, are computed in double
// and rounded once to fp32.

// A BatchNorm's parameters, each [C].
struct BatchNorm {
  at::Tensor weight, bias, mean, var;
  double eps;

  static BatchNorm Take(const weights::StateDict::Scope& scope, int channels,
                        double eps);
};

// y = x * scale + shift, per channel: what a BatchNorm does in inference.
struct Affine {
  at::Tensor scale, shift;  // fp32 [C]
};
Affine ToAffine(const BatchNorm& norm);

// The weights of a convolution or of a linear layer.
struct Weights {
  at::Tensor weight;  // [out, ...]
  at::Tensor bias;    // [out], or undefined: none.
};

// The convolution that gives the BatchNorm's answer.
Weights FoldBatchNorm(const Weights& weights, const BatchNorm& norm);

// The layer whose answer is multiplied by scale [out] already.
Weights FoldScale(const Weights& weights, const at::Tensor& scale);

// The projection (dt | B | C) of a scan's input as one product: `x_proj`, [rank
// + rest, channels], whose first outputs pass `dt_proj`, [channels, rank].
Weights ComposeProjections(const Weights& x_proj, const Weights& dt_proj);

// The scan's A = -exp(A_log), turned to lie as the kernel reads it: A_log
// [channels, states] to [states, channels].
at::Tensor DecayRates(const at::Tensor& A_log);

}  // namespace sfmamba::layers

#endif  // SFMAMBA_MODEL_LAYERS_WEIGHT_TRANSFORMS_H_
