#ifndef SFMAMBA_MODEL_LAYERS_SHORT_CONVOLUTION_H_
#define SFMAMBA_MODEL_LAYERS_SHORT_CONVOLUTION_H_

#include "ATen/core/Tensor.h"
#include "model/layers/layer_options.h"
#include "model/ops/device_ops.h"
#include "model/weights/state_dict.h"

namespace sfmamba::layers {

// A mixer's depthwise convolution along each sequence, then SiLU. Immutable, so
// thread-safe.
class ShortConvolution {
 public:
  struct Shape {
    int channels;
    int taps = 3;
    int left = 1;  // Taps before the token itself.
    bool bias = false;
  };

  // Takes "weight" [channels, 1, taps] and, if the shape says so, "bias"
  // [channels].
  ShortConvolution(const weights::StateDict::Scope& scope, const Shape& shape,
                   const LayerOptions& options);

  // x to y, both [rows, tokens, channels], their last axis dense; `length`
  // tokens in a row are a sequence. y is written.
  void Forward(const at::Tensor& x, int64_t length, at::Tensor y) const;

  // Two convolutions alike in taps, of two tensors, as one step of a device.
  struct Step {
    const ShortConvolution& convolution;
    at::Tensor x, y;
  };
  static void ForwardBoth(const Step& first, const Step& second,
                          int64_t length);

 private:
  ops::ShortConv Args(const at::Tensor& x, const at::Tensor& y) const;

  bool fuse_;
  int left_;
  at::Tensor weight_;  // [taps, channels]
  at::Tensor bias_;    // [channels] or undefined.
};

}  // namespace sfmamba::layers

#endif  // SFMAMBA_MODEL_LAYERS_SHORT_CONVOLUTION_H_
