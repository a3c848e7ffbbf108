#include "model/backbones/vim_mixer.h"

#include "ATen/ops/empty.h"
#include "ATen/ops/silu.h"

namespace sfmamba::backbones {
namespace {

layers::ShortConvolution::Shape ConvShape(const VimMixer::Shape& shape) {
  return {shape.expand * shape.width, /*taps=*/4, /*left=*/3, /*bias=*/true};
}

SsmBranch::Shape BranchShape(const VimMixer::Shape& shape) {
  return {shape.expand * shape.width,
          /*rank=*/(shape.width + 15) / 16,
          /*states=*/16,
          /*dt_bias_scale=*/1};
}

}  // namespace

VimMixer::VimMixer(const weights::StateDict::Scope& scope, const Shape& shape,
                   const at::Tensor& gamma,
                   const ops::Implementation& implementation)
    : channels_(shape.expand * shape.width),
      in_proj_({layers::Linear::Take(scope.Sub("in_proj"), shape.width,
                                     2 * channels_, false),
                {}},
               implementation),
      out_proj_({layers::Linear::Take(scope.Sub("out_proj"), channels_,
                                      shape.width, false),
                 gamma},
                implementation),
      forward_(scope, "conv1d", ConvShape(shape), "", BranchShape(shape),
               implementation) {
  if (shape.backward) {
    backward_.emplace(scope, "conv1d", ConvShape(shape), "_b",
                      BranchShape(shape), implementation);
  }
}

void VimMixer::AddTo(ops::Residual& residual, const at::Tensor& x,
                     int64_t length) const {
  const at::Tensor xz = in_proj_.Forward(x);
  const at::Tensor u = xz.narrow(2, 0, channels_);
  const at::Tensor z = xz.narrow(2, channels_, channels_);
  at::Tensor y = at::empty(u.sizes(), u.options());
  forward_.Forward(u, length, y);
  if (backward_.has_value()) {
    backward_->AddBackward(u, length, y);
    y.mul_(0.5);  // y is the mean of both directions.
  }
  out_proj_.AddTo(residual, y.mul_(at::silu(z)));
}

}  // namespace sfmamba::backbones
