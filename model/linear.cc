#include "model/linear.h"

#include "ATen/TensorOperators.h"
#include "ATen/ops/addmm.h"
#include "ATen/ops/gelu.h"
#include "ATen/ops/mm.h"
#include "kernels/cpu_features.h"
#include "model/onednn.h"
#include "model/ops.h"

namespace sfmamba {
namespace {

// Rows of a stage-3 window of the base size: what oneDNN packs for.
constexpr int64_t kTypicalRows = 196;

// x [..., in] as [rows, in], without a copy if the rows are evenly apart.
at::Tensor AsRows(const at::Tensor& x) { return x.reshape({-1, x.size(-1)}); }

// `rows`, doubled if it is a single one.
at::Tensor AtLeastTwo(const at::Tensor& rows) {
  return rows.size(0) == 1 ? rows.expand({2, -1}).contiguous() : rows;
}

// y [rows, out] with the leading sizes of `x`.
at::Tensor Like(const at::Tensor& x, const at::Tensor& y, int64_t rows) {
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = y.size(1);
  return y.narrow(0, 0, rows).view(sizes);
}

}  // namespace

Linear::Linear(const Weights& weights, const at::Tensor& scale,
               const LayerOptions& options)
    : options_(options),
      packed_(options.fuse && half() && HasAmxBf16()),
      in_(weights.weight.size(1)),
      out_(weights.weight.size(0)) {
  Weights used = weights;
  if (scale.defined() && options.fuse) {
    used = FoldScale(weights, scale);
  } else {
    scale_ = scale;
  }
  const at::ScalarType type = half() ? at::kBFloat16 : at::kFloat;
  weight_ = used.weight.to(type);
  if (packed_) {
    weight_ = PackLinearWeight(weight_, kTypicalRows);
  } else {
    weight_ = options.fuse ? weight_.t().contiguous() : weight_.t();
  }
  if (used.bias.defined()) bias_ = used.bias.to(type);
}

Weights Linear::Take(const StateDict::Scope& scope, int in, int out,
                     bool bias) {
  Weights weights{scope.Take("weight", {out, in}), {}};
  if (bias) weights.bias = scope.Take("bias", {out});
  return weights;
}

at::Tensor Linear::ForwardRows(const at::Tensor& rows) const {
  const at::Tensor x = half() ? rows.to(at::kBFloat16) : rows;
  const at::Tensor y = packed_ ? PackedLinear(x, weight_, bias_, "none")
                       : bias_.defined() ? at::addmm(bias_, x, weight_)
                                         : at::mm(x, weight_);
  return scale_.defined() ? y * scale_ : y;
}

at::Tensor Linear::GeluRows(const at::Tensor& rows) const {
  if (!options_.fuse) return at::gelu(ForwardRows(rows));
  if (packed_) {
    return PackedLinear(rows.to(at::kBFloat16), weight_, bias_, "gelu");
  }
  if (half()) {
    at::Tensor y = ForwardRows(rows);
    ops::GeluErf(y, {});
    return y;
  }
  at::Tensor y = at::mm(rows, weight_);
  ops::GeluErf(y, bias_);
  return y;
}

void Linear::AddRows(at::Tensor& residual, const at::Tensor& rows) const {
  if (half() || scale_.defined()) {
    residual.add_(ForwardRows(rows));
    return;
  }
  residual.addmm_(rows, weight_);
  if (bias_.defined()) residual.add_(bias_);
}

at::Tensor Linear::forward(const at::Tensor& x) const {
  const at::Tensor rows = AsRows(x);
  return Like(x, ForwardRows(AtLeastTwo(rows)), rows.size(0));
}

at::Tensor Linear::ForwardGelu(const at::Tensor& x) const {
  const at::Tensor rows = AsRows(x);
  return Like(x, GeluRows(AtLeastTwo(rows)), rows.size(0));
}

void Linear::AddTo(at::Tensor& residual, const at::Tensor& x) const {
  at::Tensor rows = residual.view({-1, out_});
  if (rows.size(0) > 1) {
    AddRows(rows, AsRows(x));
  } else {
    at::Tensor two = AtLeastTwo(rows);
    AddRows(two, AtLeastTwo(AsRows(x)));
    rows.copy_(two.narrow(0, 0, 1));
  }
}

}  // namespace sfmamba
