#ifndef SFMAMBA_MODEL_LAYERS_SHORT_CONVOLUTION_H_
#define SFMAMBA_MODEL_LAYERS_SHORT_CONVOLUTION_H_

#include "ATen/core/Tensor.h"
#include "model/layers/layer_options.h"
#include "model/ops/device_ops.h"
#include "model/weights/state_dict.h"

namespace sfmamba::layers {

// A mixer's depthwise convolution along each sequence, followed by SiLU.
// Immutable, so thread-safe.
class ShortConvolution {
 public:
  struct Shape {
    int channels;
    int taps = 3;
    int left = 1;  // Taps before the token.
    bool bias = false;
  };

  // Takes "weight" [channels, 1, taps] and, if shape.bias, "bias" [channels].
  ShortConvolution(const weights::StateDict::Scope& scope, const Shape& shape,
                   const LayerOptions& options);

  // Convolves x into y. Both are [rows, tokens, channels] with a contiguous
  // last axis. Each `length` consecutive tokens are a sequence.
  void Forward(const at::Tensor& x, int64_t length, at::Tensor y) const;

  // Two convolutions with the same taps, which a device runs in one launch.
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
