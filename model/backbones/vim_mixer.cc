#include "model/backbones/vim_mixer.h"

#include "ATen/ops/empty.h"
#include "ATen/ops/silu.h"

namespace sfmamba::backbones {
namespace {

SsmBranch::Shape PathShape(const VimMixer::Shape& shape) {
  return {{shape.expand * shape.width, /*taps=*/4, /*left=*/3, /*bias=*/true},
          /*rank=*/(shape.width + 15) / 16,
          /*states=*/16,
          /*dt_bias_scale=*/1};
}

}  // namespace

VimMixer::VimMixer(const weights::StateDict::Scope& scope, const Shape& shape,
                   const at::Tensor& gamma, const layers::LayerOptions& options)
    : channels_(shape.expand * shape.width),
      in_proj_(layers::Linear::Take(scope.Sub("in_proj"), shape.width,
                                    2 * channels_, false),
               {}, options),
      out_proj_(layers::Linear::Take(scope.Sub("out_proj"), channels_,
                                     shape.width, false),
                gamma, options),
      forward_(scope, "conv1d", "", PathShape(shape), options) {
  if (shape.backward) {
    backward_.emplace(scope, "conv1d", "_b", PathShape(shape), options);
  }
}

void VimMixer::AddTo(layers::Residual& residual, const at::Tensor& x,
                     int64_t length) const {
  const at::Tensor xz = in_proj_.Forward(x);
  const at::Tensor u = xz.narrow(2, 0, channels_);
  const at::Tensor z = xz.narrow(2, channels_, channels_);
  at::Tensor y = at::empty(u.sizes(), u.options());
  forward_.Forward(u, length, y);
  if (backward_.has_value()) {
    backward_->AddBackward(u, length, y);
    y.mul_(0.5);
  }
  out_proj_.AddTo(residual, y.mul_(at::silu(z)));
}

}  // namespace sfmamba::backbones
