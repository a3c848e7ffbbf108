#ifndef SFMAMBA_MODEL_CONVOLUTION_H_
#define SFMAMBA_MODEL_CONVOLUTION_H_

#include <optional>

#include "ATen/core/Tensor.h"
#include "model/fuse.h"
#include "model/layer_options.h"

namespace sfmamba {

// A convolution whose padding keeps the sides, then a BatchNorm and a ReLU
// where there are any: [N, in, H, W] to [N, out, ceil(H / stride), ceil(W /
// stride)]. Immutable, so thread-safe. Fused, maps are channels-last in memory
// and of the compute type.
class Convolution {
 public:
  struct Shape {
    int in = 0, out = 0;
    int stride = 1;
    int input_size = 0;  // Pixels a side, expected at run time: a hint.
    int kernel = 3;      // Pixels a side, odd.
    // Of 3x3 and stride 1 only: Winograd's method, where the processor has
    // vectors. A third of the work, somewhat more rounding.
    bool winograd = false;
  };

  Convolution(const Shape& shape, const Weights& weights,
              const std::optional<BatchNorm>& norm, bool relu,
              const LayerOptions& options);

  // Takes "weight" [out, in, kernel, kernel] and, if `bias`, "bias" [out] from
  // `scope`.
  static Weights Take(const StateDict::Scope& scope, const Shape& shape,
                      bool bias);

  at::Tensor forward(const at::Tensor& x) const;
  // The same without ReLU, then GELU in its tanh form.
  at::Tensor ForwardGeluTanh(const at::Tensor& x) const;
  // residual += forward(x), maybe in place: residual's memory must not be
  // shared. Stride 1, no ReLU.
  void AddTo(at::Tensor& residual, const at::Tensor& x) const;

 private:
  // Who convolves: our own kernel (fused fp32), oneDNN (fused), libtorch on a
  // device (on a GPU cuDNN), or libtorch.
  enum class Method { kWinograd, kOneDnn, kDevice, kPlain };

  static Method ChooseMethod(const Shape& shape, const LayerOptions& options,
                             bool on_device);
  // x, of the compute type, without ReLU.
  at::Tensor Convolve(const at::Tensor& x, const at::Tensor& bias) const;

  Method method_;
  bool fuse_;
  int out_;
  int stride_;
  int padding_;
  bool relu_;
  at::Tensor weight_;              // Packed, or [out, in, kernel, kernel].
  at::Tensor bias_;                // [out] or undefined.
  at::Tensor gelu_bias_;           // The same, fp32, if kDevice.
  std::optional<BatchNorm> norm_;  // Empty once folded.
};

}  // namespace sfmamba

#endif  // SFMAMBA_MODEL_CONVOLUTION_H_
