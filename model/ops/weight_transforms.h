#ifndef SFMAMBA_MODEL_OPS_WEIGHT_TRANSFORMS_H_
#define SFMAMBA_MODEL_OPS_WEIGHT_TRANSFORMS_H_

#include "ATen/core/Tensor.h"
#include "model/weights/state_dict.h"

namespace sfmamba::ops {

// Transformations of weights at load. In exact arithmetic, they would not
// change the network's results. They are computed in double, and each result is
// rounded once to fp32.

// A BatchNorm's parameters, each [C].
struct BatchNorm {
  at::Tensor weight, bias, mean, var;
  double eps;

  static BatchNorm Take(const weights::StateDict::Scope& scope, int channels,
                        double eps);
};

// The operation y = x * scale + shift for each channel. In inference, a
// BatchNorm is such an operation.
struct Affine {
  at::Tensor scale, shift;  // fp32 [C]
};
Affine ToAffine(const BatchNorm& norm);

// The weights of a convolution or of a linear layer.
struct Weights {
  at::Tensor weight;  // [out, ...]
  at::Tensor bias;    // [out], or undefined.
};

// Returns a convolution that computes the same as `weights` followed by `norm`.
Weights FoldBatchNorm(const Weights& weights, const BatchNorm& norm);

// Returns a 1x1 convolution that computes the same as `norm`, `first` and
// `second` in this order. The weight of `first` is [middle, in, 1, 1], and the
// weight of `second` is [out, middle, 1, 1]. Their biases may be undefined, but
// the result always has a bias.
Weights ComposePointwise(const BatchNorm& norm, const Weights& first,
                         const Weights& second);

// Returns a layer that computes the same as `weights` followed by a
// multiplication by scale [out].
Weights FoldScale(const Weights& weights, const at::Tensor& scale);

// Combines a scan's two projections into one layer with the outputs (dt | B |
// C). The layer computes the same as two steps. First, `x_proj` [rank + rest,
// channels] computes rank + rest outputs. Then `dt_proj` [channels, rank]
// replaces the first `rank` of them by dt, and the others are B and C.
Weights ComposeProjections(const Weights& x_proj, const Weights& dt_proj);

// Returns the scan's A = -exp(A_log). A_log is [channels, states]. The result
// is transposed to [states, channels], as the kernels need it.
at::Tensor DecayRates(const at::Tensor& A_log);

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_WEIGHT_TRANSFORMS_H_
