#ifndef SFMAMBA_MODEL_OPS_WEIGHT_TRANSFORMS_H_
#define SFMAMBA_MODEL_OPS_WEIGHT_TRANSFORMS_H_

#include "ATen/core/Tensor.h"
#include "model/weights/state_dict.h"

namespace sfmamba::ops {

// Transformations of weights at load. They are exact in real arithmetic,
// computed in double and rounded once to fp32.

// A BatchNorm's parameters, each [C].
struct BatchNorm {
  at::Tensor weight, bias, mean, var;
  double eps;

  static BatchNorm Take(const weights::StateDict::Scope& scope, int channels,
                        double eps);
};

// y = x * scale + shift per channel, as a BatchNorm computes in inference.
struct Affine {
  at::Tensor scale, shift;  // fp32 [C]
};
Affine ToAffine(const BatchNorm& norm);

// The weights of a convolution or of a linear layer.
struct Weights {
  at::Tensor weight;  // [out, ...]
  at::Tensor bias;    // [out], or undefined.
};

// Returns the convolution that equals `weights` followed by `norm`.
Weights FoldBatchNorm(const Weights& weights, const BatchNorm& norm);

// Returns the 1x1 convolution that equals `norm`, then `first`, [middle, in, 1,
// 1], then `second`, [out, middle, 1, 1]. Biases may be undefined; the result
// has one.
Weights ComposePointwise(const BatchNorm& norm, const Weights& first,
                         const Weights& second);

// Returns the layer that equals `weights` followed by a multiplication by scale
// [out].
Weights FoldScale(const Weights& weights, const at::Tensor& scale);

// Returns a scan's two projections as one layer with outputs (dt | B | C). It
// equals `x_proj`, [rank + rest, channels], if `dt_proj`, [channels, rank], is
// then applied to the first `rank` outputs.
Weights ComposeProjections(const Weights& x_proj, const Weights& dt_proj);

// Returns the scan's A = -exp(A_log), transposed for the kernel: from
// [channels, states] to [states, channels].
at::Tensor DecayRates(const at::Tensor& A_log);

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_WEIGHT_TRANSFORMS_H_
