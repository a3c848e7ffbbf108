#ifndef SFMAMBA_MODEL_LAYERS_CONVOLUTION_H_
#define SFMAMBA_MODEL_LAYERS_CONVOLUTION_H_

#include <memory>
#include <optional>

#include "ATen/core/Tensor.h"
#include "model/ops/implementation.h"
#include "model/weights/state_dict.h"

namespace sfmamba::layers {

// A convolution with padding (kernel - 1) / 2, followed by an optional
// BatchNorm and an activation. It maps [N, in, H, W] to [N, out, ceil(H /
// stride), ceil(W / stride)]. Immutable, so thread-safe.
class Convolution {
 public:
  struct Shape {
    int in = 0, out = 0;
    int stride = 1;
    int input_size = 0;  // The expected side of the input in pixels.
    int kernel = 3;      // The kernel's side in pixels, odd.
    int groups = 1;      // Divides in and out; `in` if depthwise.
    // Whether the result is an output of the network.
    bool is_output = false;
    int maps = 1;                 // The expected number of inputs at once.
    bool feeds_products = false;  // Whether only convolutions read the result.
  };

  Convolution(const Shape& shape, const ops::Weights& weights,
              const std::optional<ops::BatchNorm>& norm,
              ops::Activation activation,
              const ops::Implementation& implementation);

  // Takes "weight" [out, in / groups, kernel, kernel] and, if `bias`, "bias"
  // [out] from `scope`.
  static ops::Weights Take(const weights::StateDict::Scope& scope,
                           const Shape& shape, bool bias);

  at::Tensor Forward(const at::Tensor& x) const { return op_->Forward(x); }
  // Computes residual += Forward(x). May write to residual's memory, which no
  // other tensor may share. Requires stride 1, one group and no activation.
  // `residual` must be the result of another layer.
  void AddTo(at::Tensor& residual, const at::Tensor& x) const {
    op_->AddTo(residual, x);
  }

 private:
  std::unique_ptr<const ops::ConvolutionOp> op_;
};

}  // namespace sfmamba::layers

#endif  // SFMAMBA_MODEL_LAYERS_CONVOLUTION_H_
