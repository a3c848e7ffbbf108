#include "model/backbones/mamba_mixer.h"

#include "ATen/ops/empty.h"
#include "ATen/ops/empty_like.h"

namespace sfmamba {
namespace {

constexpr int kStates = 8;
constexpr double kDtBiasScale = 2;

}  // namespace

MambaMixer::MambaMixer(const StateDict::Scope& scope, int width, ScanMode scan,
                       const at::Tensor& gamma, const LayerOptions& options)
    : half_(width / 2),
      in_proj_(Linear::Take(scope.Sub("in_proj"), width, width, false), {},
               options),
      out_proj_(Linear::Take(scope.Sub("out_proj"), width, width, false), gamma,
                options),
      forward_(scope, "conv1d_x", "",
               {{half_},
                (width + 15) / 16,
                kStates,
                kDtBiasScale,
                scan == ScanMode::kParallelCat ? half_ - half_ / 2 : 0},
               options),
      conv_z_(scope.Sub("conv1d_z"), {half_}, options) {
  if (scan == ScanMode::kParallelAdd) {
    backward_.emplace(
        scope, "conv1d_x", "_b",
        ScanPath::Shape{{half_}, (width + 15) / 16, kStates, kDtBiasScale},
        options);
  }
}

void MambaMixer::AddTo(Residual& residual, const at::Tensor& x,
                       int64_t length) const {
  const at::Tensor xz = in_proj_.forward(x);
  const at::Tensor out = at::empty_like(xz);  // (y | z)
  const at::Tensor u = xz.narrow(2, 0, half_), y = out.narrow(2, 0, half_);
  const at::Tensor convolved = at::empty(u.sizes(), u.options());
  ShortConvolution::ForwardBoth(
      {forward_.convolution(), u, convolved},
      {conv_z_, xz.narrow(2, half_, half_), out.narrow(2, half_, half_)},
      length);
  forward_.ForwardFrom(convolved, length, y);
  if (backward_.has_value()) backward_->AddBackward(u, length, y);
  out_proj_.AddTo(residual, out);
}

}  // namespace sfmamba
