#include "model/backbones/mamba_mixer.h"

#include "ATen/ops/empty.h"
#include "ATen/ops/empty_like.h"

namespace sfmamba::backbones {
namespace {

constexpr int kStates = 8;
constexpr double kDtBiasScale = 2;

}  // namespace

MambaMixer::MambaMixer(const weights::StateDict::Scope& scope, int width,
                       model::ScanMode scan, const at::Tensor& gamma,
                       const layers::LayerOptions& options)
    : half_(width / 2),
      in_proj_(layers::Linear::Take(scope.Sub("in_proj"), width, width, false),
               {}, options),
      out_proj_(
          layers::Linear::Take(scope.Sub("out_proj"), width, width, false),
          gamma, options),
      forward_(scope, "conv1d_x", "",
               {{half_},
                (width + 15) / 16,
                kStates,
                kDtBiasScale,
                scan == model::ScanMode::kParallelCat ? half_ - half_ / 2 : 0},
               options),
      conv_z_(scope.Sub("conv1d_z"), {half_}, options) {
  if (scan == model::ScanMode::kParallelAdd) {
    backward_.emplace(
        scope, "conv1d_x", "_b",
        SsmBranch::Shape{{half_}, (width + 15) / 16, kStates, kDtBiasScale},
        options);
  }
}

void MambaMixer::AddTo(layers::Residual& residual, const at::Tensor& x,
                       int64_t length) const {
  const at::Tensor xz = in_proj_.Forward(x);
  const at::Tensor out = at::empty_like(xz);  // (y | z)
  const at::Tensor u = xz.narrow(2, 0, half_), y = out.narrow(2, 0, half_);
  const at::Tensor convolved = at::empty(u.sizes(), u.options());
  layers::ShortConvolution::ForwardBoth(
      {forward_.convolution(), u, convolved},
      {conv_z_, xz.narrow(2, half_, half_), out.narrow(2, half_, half_)},
      length);
  forward_.ForwardFrom(convolved, length, y);
  if (backward_.has_value()) backward_->AddBackward(u, length, y);
  out_proj_.AddTo(residual, out);
}

}  // namespace sfmamba::backbones
