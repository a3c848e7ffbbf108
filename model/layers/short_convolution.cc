#include "model/layers/short_convolution.h"

#include "ATen/ops/silu.h"
#include "model/ops/ops.h"
#include "model/ops/plain_ops.h"

namespace sfmamba::layers {

ShortConvolution::ShortConvolution(const weights::StateDict::Scope& scope,
                                   const Shape& shape,
                                   const LayerOptions& options)
    : fuse_(options.fuse),
      left_(shape.left),
      weight_(scope.Take("weight", {shape.channels, 1, shape.taps})
                  .view({shape.channels, shape.taps})
                  .t()
                  .contiguous()) {
  if (shape.bias) bias_ = scope.Take("bias", {shape.channels});
}

void ShortConvolution::Forward(const at::Tensor& x, int64_t length,
                               at::Tensor y) const {
  if (!fuse_) {
    y.copy_(at::silu(plain::DepthwiseConv(x, weight_, bias_, left_, length)));
    return;
  }
  ops::DepthwiseConvSilu({Args(x, y)}, left_, length);
}

void ShortConvolution::ForwardBoth(const Step& first, const Step& second,
                                   int64_t length) {
  const ShortConvolution &a = first.convolution, &b = second.convolution;
  if (!a.fuse_) {
    a.Forward(first.x, length, first.y);
    b.Forward(second.x, length, second.y);
    return;
  }
  ops::DepthwiseConvSilu({a.Args(first.x, first.y), b.Args(second.x, second.y)},
                         a.left_, length);
}

ops::ShortConv ShortConvolution::Args(const at::Tensor& x,
                                      const at::Tensor& y) const {
  const int64_t channels = x.size(2);
  return {x.view({-1, channels}), weight_, bias_, y.view({-1, channels})};
}

}  // namespace sfmamba::layers
