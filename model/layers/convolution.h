#ifndef SFMAMBA_MODEL_LAYERS_CONVOLUTION_H_
#define SFMAMBA_MODEL_LAYERS_CONVOLUTION_H_

#include <optional>

#include "ATen/core/Tensor.h"
#include "model/layers/layer_options.h"
#include "model/layers/weight_transforms.h"

namespace sfmamba::layers {

// kRelu6 is min(max(x, 0), 6). NaN stays NaN.
enum class Activation { kNone, kRelu, kRelu6 };

// The same for a device's kernels.
kernels::CudaActivation ToCuda(Activation activation);

// A convolution whose padding keeps the sides, then a BatchNorm and an
// activation where there are any: [N, in, H, W] to [N, out, ceil(H / stride),
// ceil(W / stride)]. Immutable, so thread-safe. Fused, maps are channels-last
// in memory and of the compute type.
class Convolution {
 public:
  struct Shape {
    int in = 0, out = 0;
    int stride = 1;
    int input_size = 0;  // Pixels a side, expected at run time: a hint.
    int kernel = 3;      // Pixels a side, odd.
    // Of 3x3, stride 1 and one group, without ReLU6, only: Winograd's method,
    // where the processor has vectors. A third of the work, somewhat more
    // rounding.
    bool winograd = false;
    int groups = 1;  // Divides in and out; `in`: depthwise.
  };

  Convolution(const Shape& shape, const Weights& weights,
              const std::optional<BatchNorm>& norm, Activation activation,
              const LayerOptions& options);

  // Takes "weight" [out, in / groups, kernel, kernel] and, if `bias`, "bias"
  // [out] from `scope`.
  static Weights Take(const weights::StateDict::Scope& scope,
                      const Shape& shape, bool bias);

  at::Tensor Forward(const at::Tensor& x) const;
  // The same, then GELU in its tanh form. No activation before it.
  at::Tensor ForwardGeluTanh(const at::Tensor& x) const;
  // residual += Forward(x), maybe in place: residual's memory must not be
  // shared. Stride 1, one group, no activation. Fused, residual is
  // channels-last in memory.
  void AddTo(at::Tensor& residual, const at::Tensor& x) const;

 private:
  // Who convolves: our own kernel (fused fp32), oneDNN (fused), the device, or
  // libtorch.
  enum class Method { kWinograd, kOneDnn, kDevice, kPlain };

  static Method ChooseMethod(const Shape& shape, const LayerOptions& options,
                             bool on_device);
  // Of x of the compute type: kDevice's, without the bias or with all that
  // follows.
  at::Tensor ConvolveOnDevice(const at::Tensor& x) const;
  at::Tensor ForwardOnDevice(const at::Tensor& x,
                             kernels::CudaActivation activation) const;
  // kOneDnn's and kPlain's, without the activation.
  at::Tensor Convolve(const at::Tensor& x) const;

  Method method_;
  bool fuse_;
  int out_;
  int stride_;
  int padding_;
  int groups_;
  ops::ConvSearch search_;
  Activation activation_;
  at::Tensor weight_;  // Packed, or [out, in / groups, kernel, kernel].
  at::Tensor bias_;    // [out] or undefined; kDevice's is fp32.
  std::optional<BatchNorm> norm_;  // Empty once folded.
};

}  // namespace sfmamba::layers

#endif  // SFMAMBA_MODEL_LAYERS_CONVOLUTION_H_
