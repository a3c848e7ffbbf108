#include "model/layers/linear.h"

#include "ATen/TensorOperators.h"
#include "ATen/ops/addmm.h"
#include "ATen/ops/empty.h"
#include "ATen/ops/gelu.h"
#include "ATen/ops/mm.h"
#include "kernels/simd/cpu_features.h"
#include "model/ops/compute_type.h"
#include "model/ops/onednn.h"

namespace sfmamba::layers {
namespace {

// The number of rows that oneDNN packs weights for: those of a stage-3 window.
constexpr int64_t kTypicalRows = 196;

// Returns x [..., in] as [rows, in], without a copy if the rows are evenly
// spaced.
at::Tensor AsRows(const at::Tensor& x) { return x.reshape({-1, x.size(-1)}); }

// Views y [rows, out] with the leading sizes of x.
at::Tensor Like(const at::Tensor& x, const at::Tensor& y) {
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = y.size(1);
  return y.view(sizes);
}

}  // namespace

Linear::Multiplier Linear::ChooseMultiplier(const LayerOptions& options,
                                            bool on_device) {
  if (on_device) return Multiplier::kDevice;
  if (!options.fuse) return Multiplier::kPlain;
  if (options.precision == model::Precision::kFloat32) return Multiplier::kGemm;
  return options.precision == model::Precision::kBFloat16 &&
                 kernels::HasAmxBf16()
             ? Multiplier::kOneDnn
             : Multiplier::kPlain;
}

Linear::Linear(const Weights& weights, const at::Tensor& scale,
               const LayerOptions& options)
    : fuse_(options.fuse),
      tanh_gelu_(options.tanh_gelu()),
      type_(ops::ComputeType(options.precision)),
      multiplier_(ChooseMultiplier(options, ops::OnDevice(weights.weight))),
      out_(weights.weight.size(0)) {
  Weights used = weights;
  if (scale.defined() && options.fuse) {
    used = FoldScale(weights, scale);
  } else {
    scale_ = scale;
  }
  switch (multiplier_) {
    case Multiplier::kGemm:
      packed_ = ops::PackGemm(used.weight);
      break;
    case Multiplier::kOneDnn:
      weight_ = ops::PackLinearWeight(used.weight.to(type_), kTypicalRows);
      break;
    case Multiplier::kDevice:
    case Multiplier::kPlain:
      weight_ = used.weight.to(type_);
      break;
  }
  if (used.bias.defined()) bias_ = used.bias.to(type_);
}

Weights Linear::Take(const weights::StateDict::Scope& scope, int in, int out,
                     bool bias) {
  Weights weights{scope.Take("weight", {out, in}), {}};
  if (bias) weights.bias = scope.Take("bias", {out});
  return weights;
}

at::Tensor Linear::ForwardRows(const at::Tensor& rows) const {
  const at::Tensor x = rows.to(type_);
  at::Tensor y;
  switch (multiplier_) {
    case Multiplier::kGemm:
      y = at::empty({x.size(0), out_}, x.options());
      ops::Gemm(x, packed_, bias_, /*add=*/false, y);
      return y;
    case Multiplier::kOneDnn:
      return ops::PackedLinear(x, weight_, bias_, "none");
    case Multiplier::kDevice:
      return ops::DeviceOpsOf(x)->Linear(x, weight_, bias_);
    case Multiplier::kPlain:
      y = bias_.defined() ? at::addmm(bias_, x, weight_.t())
                          : at::mm(x, weight_.t());
      return scale_.defined() ? y * scale_ : y;
  }
  return y;
}

at::Tensor Linear::GeluRows(const at::Tensor& rows) const {
  if (multiplier_ == Multiplier::kOneDnn) {
    return ops::PackedLinear(rows.to(type_), weight_, bias_, "gelu");
  }
  if (multiplier_ == Multiplier::kDevice && tanh_gelu_ && bias_.defined()) {
    return ops::DeviceOpsOf(rows)->LinearGeluTanh(rows.to(type_), weight_,
                                                  bias_);
  }
  at::Tensor y = ForwardRows(rows);
  if (!fuse_) return at::gelu(y);
  ops::GeluErf(y);
  return y;
}

at::Tensor Linear::Forward(const at::Tensor& x) const {
  return Like(x, ForwardRows(AsRows(x)));
}

at::Tensor Linear::ForwardGelu(const at::Tensor& x) const {
  return Like(x, GeluRows(AsRows(x)));
}

void Linear::AddTo(Residual& residual, const at::Tensor& x) const {
  const at::Tensor rows = AsRows(x);
  if (multiplier_ == Multiplier::kGemm) {
    ops::Gemm(rows, packed_, bias_, /*add=*/true,
              residual.Sum().view({-1, out_}));
  } else if (multiplier_ == Multiplier::kDevice && !bias_.defined() &&
             residual.scalar_type() == type_) {
    ops::DeviceOpsOf(rows)->AddLinear(rows.to(type_), weight_,
                                      residual.Sum().view({-1, out_}));
  } else {
    residual.Add(ForwardRows(rows));
  }
}

}  // namespace sfmamba::layers
