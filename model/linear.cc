#include "model/linear.h"

#include "ATen/TensorOperators.h"
#include "ATen/ops/addmm.h"
#include "ATen/ops/empty.h"
#include "ATen/ops/gelu.h"
#include "ATen/ops/mm.h"
#include "c10/core/InferenceMode.h"
#include "kernels/cpu_features.h"
#include "model/onednn.h"
#include "model/ops.h"
#include "model/parallel.h"

namespace sfmamba {
namespace {

// Rows of a stage-3 window of the base size: what oneDNN packs for.
constexpr int64_t kTypicalRows = 196;

// x [..., in] as [rows, in], without a copy if the rows are evenly apart.
at::Tensor AsRows(const at::Tensor& x) { return x.reshape({-1, x.size(-1)}); }

// Rows of the smallest product that MKL rounds as it does larger ones.
constexpr int64_t kUnitRows = 4;

// `rows`, repeated if there are fewer than two units of them.
at::Tensor AtLeastTwoUnits(const at::Tensor& rows) {
  const int64_t least = 2 * kUnitRows, count = rows.size(0);
  if (count >= least) return rows;
  return rows.repeat({(least + count - 1) / count, 1}).narrow(0, 0, least);
}

// Calls multiply(first row, rows) on parts of at least a unit, shared out over
// the threads, so that each product runs on one thread.
template <typename Multiply>
void ForEachPart(int64_t rows, Multiply multiply) {
  const int64_t units = rows / kUnitRows;
  ParallelFor(units, /*grain=*/1, [&](int64_t begin, int64_t end) {
    const c10::InferenceMode guard;  // Of this thread.
    const int64_t first = begin * kUnitRows;
    multiply(first, (end == units ? rows : end * kUnitRows) - first);
  });
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

at::Tensor Linear::Multiply(const at::Tensor& x, const at::Tensor& bias) const {
  const at::Tensor y = at::empty({x.size(0), out_}, x.options());
  ForEachPart(x.size(0), [&](int64_t first, int64_t rows) {
    at::Tensor part = y.narrow(0, first, rows);
    if (bias.defined()) {
      at::addmm_out(part, bias, x.narrow(0, first, rows), weight_);
    } else {
      at::mm_out(part, x.narrow(0, first, rows), weight_);
    }
  });
  return y;
}

at::Tensor Linear::ForwardRows(const at::Tensor& rows) const {
  const at::Tensor x = half() ? rows.to(at::kBFloat16) : rows;
  const at::Tensor y =
      packed_ ? PackedLinear(x, weight_, bias_, "none") : Multiply(x, bias_);
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
  at::Tensor y = Multiply(rows, {});
  ops::GeluErf(y, bias_);
  return y;
}

void Linear::AddRows(at::Tensor& residual, const at::Tensor& rows) const {
  if (half() || scale_.defined()) {
    residual.add_(ForwardRows(rows));
    return;
  }
  ForEachPart(rows.size(0), [&](int64_t first, int64_t count) {
    residual.narrow(0, first, count)
        .addmm_(rows.narrow(0, first, count), weight_);
  });
  if (bias_.defined()) residual.add_(bias_);
}

at::Tensor Linear::forward(const at::Tensor& x) const {
  const at::Tensor rows = AsRows(x);
  return Like(x, ForwardRows(AtLeastTwoUnits(rows)), rows.size(0));
}

at::Tensor Linear::ForwardGelu(const at::Tensor& x) const {
  const at::Tensor rows = AsRows(x);
  return Like(x, GeluRows(AtLeastTwoUnits(rows)), rows.size(0));
}

void Linear::AddTo(at::Tensor& residual, const at::Tensor& x) const {
  at::Tensor rows = residual.view({-1, out_});
  at::Tensor sum = AtLeastTwoUnits(rows);
  AddRows(sum, AtLeastTwoUnits(AsRows(x)));
  if (!sum.is_same(rows)) rows.copy_(sum.narrow(0, 0, rows.size(0)));
}

}  // namespace sfmamba
