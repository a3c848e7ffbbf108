#ifndef SFMAMBA_MODEL_LAYERS_SHORT_CONVOLUTION_H_
#define SFMAMBA_MODEL_LAYERS_SHORT_CONVOLUTION_H_

#include <memory>
#include <utility>
#include <vector>

#include "ATen/core/Tensor.h"
#include "model/ops/implementation.h"
#include "model/weights/state_dict.h"

namespace sfmamba::layers {

// One or two depthwise convolutions of a mixer along each sequence, each
// followed by SiLU. Immutable, so thread-safe.
class ShortConvolution {
 public:
  struct Shape {
    int channels;
    int taps = 3;
    int left = 1;  // The number of taps before the token.
    bool bias = false;
  };
  using Part = ops::ShortConvolutionParameters::Part;
  using Step = ops::ShortConvolutionOp::Step;

  // Each of `parts` is one of the convolutions. All of them have `left` taps
  // before the token.
  ShortConvolution(std::vector<Part> parts, int left,
                   const ops::Implementation& implementation)
      : op_(implementation.MakeShortConvolution({std::move(parts), left})) {}

  // Takes "weight" [channels, 1, taps] and, if shape.bias, "bias" [channels]
  // from `scope`.
  static Part Take(const weights::StateDict::Scope& scope, const Shape& shape);

  // Convolves x to y in each step. There is one step for each convolution. x
  // and y are [rows, tokens, channels] with a contiguous last axis. Each
  // `length` consecutive tokens form a sequence.
  void Forward(absl::Span<const Step> steps, int64_t length) const {
    op_->Forward(steps, length);
  }

 private:
  std::unique_ptr<const ops::ShortConvolutionOp> op_;
};

}  // namespace sfmamba::layers

#endif  // SFMAMBA_MODEL_LAYERS_SHORT_CONVOLUTION_H_
