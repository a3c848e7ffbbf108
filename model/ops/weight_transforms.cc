#include "model/ops/weight_transforms.h"

#include "ATen/TensorOperators.h"
#include "ATen/ops/cat.h"
#include "ATen/ops/exp.h"
#include "ATen/ops/matmul.h"
#include "ATen/ops/neg.h"
#include "ATen/ops/zeros_like.h"

namespace sfmamba::ops {
namespace {

// Weights are folded in double and rounded once, so that a folded weight is as
// exact as a stored one.
at::Tensor ToDouble(const at::Tensor& x) { return x.to(at::kDouble); }
at::Tensor ToFloat(const at::Tensor& x) {
  return x.to(at::kFloat).contiguous();
}

// Views scale [out] as [out, 1, ...], which broadcasts with `weight`.
at::Tensor PerOutput(const at::Tensor& scale, const at::Tensor& weight) {
  std::vector<int64_t> shape(weight.dim(), 1);
  shape[0] = -1;
  return scale.view(shape);
}

// Returns the scale and shift of `norm` in double.
Affine ExactAffine(const BatchNorm& norm) {
  const at::Tensor scale =
      ToDouble(norm.weight) / (ToDouble(norm.var) + norm.eps).sqrt();
  return {scale, ToDouble(norm.bias) - ToDouble(norm.mean) * scale};
}

}  // namespace

BatchNorm BatchNorm::Take(const weights::StateDict::Scope& scope, int channels,
                          double eps) {
  return {scope.Take("weight", {channels}), scope.Take("bias", {channels}),
          scope.Take("running_mean", {channels}),
          scope.Take("running_var", {channels}), eps};
}

Affine ToAffine(const BatchNorm& norm) {
  const Affine exact = ExactAffine(norm);
  return {ToFloat(exact.scale), ToFloat(exact.shift)};
}

Weights FoldBatchNorm(const Weights& weights, const BatchNorm& norm) {
  const Affine exact = ExactAffine(norm);
  at::Tensor bias = exact.shift;
  if (weights.bias.defined()) {
    bias = bias + ToDouble(weights.bias) * exact.scale;
  }
  return {ToFloat(ToDouble(weights.weight) *
                  PerOutput(exact.scale, weights.weight)),
          ToFloat(bias)};
}

Weights ComposePointwise(const BatchNorm& norm, const Weights& first,
                         const Weights& second) {
  const Affine exact = ExactAffine(norm);
  const at::Tensor inner = ToDouble(first.weight).flatten(1);
  const at::Tensor outer = ToDouble(second.weight).flatten(1);
  at::Tensor bias = inner.matmul(exact.shift);
  if (first.bias.defined()) bias = bias + ToDouble(first.bias);
  bias = outer.matmul(bias);
  if (second.bias.defined()) bias = bias + ToDouble(second.bias);
  const at::Tensor weight = outer.matmul(inner * exact.scale);
  return {ToFloat(weight.view({weight.size(0), weight.size(1), 1, 1})),
          ToFloat(bias)};
}

Weights FoldScale(const Weights& weights, const at::Tensor& scale) {
  const at::Tensor exact = ToDouble(scale);
  Weights folded{
      ToFloat(ToDouble(weights.weight) * PerOutput(exact, weights.weight)), {}};
  if (weights.bias.defined()) {
    folded.bias = ToFloat(ToDouble(weights.bias) * exact);
  }
  return folded;
}

Weights ComposeProjections(const Weights& x_proj, const Weights& dt_proj) {
  // x_proj computes (p | B | C). dt_proj reads only p, the first `rank`
  // outputs, and expands p to dt.
  const int64_t rank = dt_proj.weight.size(1);
  const at::Tensor x = ToDouble(x_proj.weight);
  const at::Tensor dt = ToDouble(dt_proj.weight).matmul(x.narrow(0, 0, rank));
  return {ToFloat(at::cat({dt, x.narrow(0, rank, x.size(0) - rank)})), {}};
}

at::Tensor DecayRates(const at::Tensor& A_log) {
  // The result is transposed, because the kernels need all channels of a state
  // side by side in memory.
  return ToFloat(-ToDouble(A_log).exp().t());
}

}  // namespace sfmamba::ops
