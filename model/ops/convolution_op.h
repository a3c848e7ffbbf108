#ifndef SFMAMBA_MODEL_OPS_CONVOLUTION_OP_H_
#define SFMAMBA_MODEL_OPS_CONVOLUTION_OP_H_

#include <optional>

#include "ATen/core/Tensor.h"
#include "model/ops/image_batch.h"
#include "model/ops/weight_transforms.h"

namespace sfmamba::ops {

// kRelu6 is min(max(x, 0), 6), and a NaN remains a NaN. kGeluTanh is GELU in
// its tanh form.
enum class Activation { kNone, kRelu, kRelu6, kGeluTanh };

// A convolution with padding (kernel - 1) / 2. It is followed by a BatchNorm,
// if there is one, and an activation.
struct ConvolutionParameters {
  Weights weights;  // [out, in / groups, kernel, kernel], with an odd kernel,
                    // and [out]; the bias may be undefined.
  std::optional<BatchNorm> norm;
  Activation activation = Activation::kNone;
  int stride = 1;
  int groups = 1;          // Divides in and out; equals `in` if depthwise.
  int input_size = 0;      // The expected side of the input in pixels, a hint.
  bool is_output = false;  // Whether the result is an output of the network.
  int maps = 1;            // The expected number of inputs at once, a hint.
  // Whether only convolutions read the result. It may then have the type in
  // which they multiply.
  bool feeds_products = false;

  int64_t in() const { return weights.weight.size(1) * groups; }
  int64_t out() const { return weights.weight.size(0); }
  int kernel() const { return static_cast<int>(weights.weight.size(2)); }
};

// Maps x [N, in, H, W] to [N, out, ceil(H / stride), ceil(W / stride)]. The
// result has the order in memory that other operators of the implementation
// read. Immutable, so thread-safe.
class ConvolutionOp {
 public:
  virtual ~ConvolutionOp() = default;

  virtual at::Tensor Forward(const at::Tensor& x) const = 0;
  // Computes residual += Forward(x). May write to residual's memory, which no
  // other tensor may share. Requires stride 1, one group and no activation.
  // `residual` must be the result of another operator.
  virtual void AddTo(at::Tensor& residual, const at::Tensor& x) const = 0;
};

// The first convolution of a network, which maps images of H x W pixels to [N,
// out, ceil(H / stride), ceil(W / stride)]. Immutable, so thread-safe.
class StemOp {
 public:
  virtual ~StemOp() = default;

  virtual at::Tensor Forward(const ImageBatch& images) const = 0;
};

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_CONVOLUTION_OP_H_
