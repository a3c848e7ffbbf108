#include "model/mamba_mixer.h"

#include "ATen/TensorOperators.h"
#include "ATen/ops/cat.h"
#include "ATen/ops/empty.h"
#include "ATen/ops/silu.h"
#include "model/fuse.h"
#include "model/plain_ops.h"

namespace sfmamba {
namespace {

// [channels, 1, taps] to [taps, channels].
at::Tensor TakeConvolution(const StateDict::Scope& scope, int channels) {
  return scope.Take("weight", {channels, 1, 3})
      .view({channels, 3})
      .t()
      .contiguous();
}

}  // namespace

MambaMixer::MambaMixer(const StateDict::Scope& scope, int width,
                       const at::Tensor& gamma, const LayerOptions& options)
    : fuse_(options.fuse),
      half_(width / 2),
      rank_((width + 15) / 16),
      in_proj_(Linear::Take(scope.Sub("in_proj"), width, width, false), {},
               options),
      x_proj_(
          Linear::Take(scope.Sub("x_proj"), half_, rank_ + 2 * kStates, false),
          {}, options),
      dt_proj_(Linear::Take(scope.Sub("dt_proj"), rank_, half_, false), {},
               options),
      out_proj_(Linear::Take(scope.Sub("out_proj"), width, width, false), gamma,
                options),
      conv_x_(TakeConvolution(scope.Sub("conv1d_x"), half_)),
      conv_z_(TakeConvolution(scope.Sub("conv1d_z"), half_)) {
  scan_.A = DecayRates(scope.Take("A_log", {half_, kStates}));
  scan_.D = scope.Take("D", {half_});
  scan_.bias = scope.Take("dt_proj.bias", {half_}) * 2;
}

void MambaMixer::AddTo(at::Tensor& residual, const at::Tensor& x,
                       int64_t length) const {
  const at::Tensor xz = in_proj_.forward(x);
  out_proj_.AddTo(residual, fuse_ ? Fused(xz, length) : Plain(xz, length));
}

at::Tensor MambaMixer::Fused(const at::Tensor& xz, int64_t length) const {
  const at::Tensor in = xz.view({-1, 2 * half_});
  const at::Tensor out = at::empty(in.sizes(), in.options());  // (y | z)
  const at::Tensor u = at::empty({in.size(0), half_}, in.options());
  ops::DepthwiseConvSilu(in.narrow(1, 0, half_), conv_x_, {}, /*left=*/1,
                         length, u);
  ops::DepthwiseConvSilu(in.narrow(1, half_, half_), conv_z_, {}, /*left=*/1,
                         length, out.narrow(1, half_, half_));
  const at::Tensor p = x_proj_.forward(u);  // (dt | B | C)
  const at::Tensor dt = dt_proj_.forward(p.narrow(1, 0, rank_));
  ops::SelectiveScan(scan_, u, dt, p.narrow(1, rank_, kStates),
                     p.narrow(1, rank_ + kStates, kStates), length,
                     out.narrow(1, 0, half_));
  return out.view(xz.sizes());
}

at::Tensor MambaMixer::Plain(const at::Tensor& xz, int64_t length) const {
  const at::Tensor u =
      at::silu(plain::DepthwiseConv(xz.narrow(2, 0, half_), conv_x_, length));
  const at::Tensor z = at::silu(
      plain::DepthwiseConv(xz.narrow(2, half_, half_), conv_z_, length));
  const at::Tensor p = x_proj_.forward(u);  // (dt | B | C)
  const at::Tensor dt = dt_proj_.forward(p.narrow(2, 0, rank_));
  const at::Tensor y =
      plain::SelectiveScan(scan_, u, dt, p.narrow(2, rank_, kStates),
                           p.narrow(2, rank_ + kStates, kStates), length);
  return at::cat({y, z}, 2);
}

}  // namespace sfmamba
