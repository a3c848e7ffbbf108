#ifndef SFMAMBA_MODEL_LAYERS_CONVOLUTION_H_
#define SFMAMBA_MODEL_LAYERS_CONVOLUTION_H_

#include <optional>

#include "ATen/core/Tensor.h"
#include "model/layers/layer_options.h"
#include "model/layers/weight_transforms.h"

namespace sfmamba::layers {

// kRelu6 is min(max(x, 0), 6). NaN stays NaN.
enum class Activation { kNone, kRelu, kRelu6 };

// Returns the same activation for CUDA kernels.
kernels::CudaActivation ToCuda(Activation activation);

// A convolution with padding (kernel - 1) / 2, followed by an optional
// BatchNorm and an optional activation. It maps [N, in, H, W] to [N, out,
// ceil(H / stride), ceil(W / stride)]. If fused, maps are channels-last in
// memory and of the compute type. Immutable, so thread-safe.
class Convolution {
 public:
  struct Shape {
    int in = 0, out = 0;
    int stride = 1;
    int input_size = 0;  // The expected side of the input in pixels, a hint.
    int kernel = 3;      // The kernel's side in pixels, odd.
    // Whether to use Winograd's method if the processor has vector
    // instructions. It takes a third of the work and rounds somewhat more. Only
    // for 3x3 kernels of stride 1 and one group, without ReLU6.
    bool winograd = false;
    int groups = 1;  // Divides in and out; equals `in` if depthwise.
  };

  Convolution(const Shape& shape, const Weights& weights,
              const std::optional<BatchNorm>& norm, Activation activation,
              const LayerOptions& options);

  // Takes "weight" [out, in / groups, kernel, kernel] and, if `bias`, "bias"
  // [out] from `scope`.
  static Weights Take(const weights::StateDict::Scope& scope,
                      const Shape& shape, bool bias);

  at::Tensor Forward(const at::Tensor& x) const;
  // The same, followed by GELU in its tanh form. The activation must be kNone.
  at::Tensor ForwardGeluTanh(const at::Tensor& x) const;
  // residual += Forward(x). May write to residual's memory, which must not be
  // shared. Requires stride 1, one group and no activation. If fused, residual
  // is channels-last in memory.
  void AddTo(at::Tensor& residual, const at::Tensor& x) const;

 private:
  // What computes the convolution: our Winograd kernel (fused fp32), oneDNN
  // (fused), the device, or libtorch.
  enum class Method { kWinograd, kOneDnn, kDevice, kPlain };

  static Method ChooseMethod(const Shape& shape, const LayerOptions& options,
                             bool on_device);
  // kDevice's convolution, without the bias, and kDevice's Forward() with
  // `activation`. x has the compute type.
  at::Tensor ConvolveOnDevice(const at::Tensor& x) const;
  at::Tensor ForwardOnDevice(const at::Tensor& x,
                             kernels::CudaActivation activation) const;
  // kOneDnn's and kPlain's convolution, without the activation.
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
  at::Tensor bias_;    // [out] or undefined; fp32 for kDevice.
  std::optional<BatchNorm> norm_;  // Empty once folded.
};

}  // namespace sfmamba::layers

#endif  // SFMAMBA_MODEL_LAYERS_CONVOLUTION_H_
