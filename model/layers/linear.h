#ifndef SFMAMBA_MODEL_LAYERS_LINEAR_H_
#define SFMAMBA_MODEL_LAYERS_LINEAR_H_

#include "ATen/core/Tensor.h"
#include "model/layers/layer_options.h"
#include "model/layers/residual.h"
#include "model/layers/weight_transforms.h"
#include "model/ops/ops.h"

namespace sfmamba::layers {

// y = (x W^T + b) * scale over the last axis of x. Immutable, so thread-safe.
//
// If fused, in fp32 and on the CPU, a row's result is bit-identical whatever
// the other rows and the number of threads are.
class Linear {
 public:
  // `scale` [out] is a layer scale, or undefined.
  Linear(const Weights& weights, const at::Tensor& scale,
         const LayerOptions& options);

  // Takes "weight" [out, in] and, if `bias`, "bias" [out] from `scope`.
  static Weights Take(const weights::StateDict::Scope& scope, int in, int out,
                      bool bias);

  // Maps x [..., in] to [..., out] of the compute type.
  at::Tensor Forward(const at::Tensor& x) const;
  // The same, followed by GELU in its erf form or, on a device where
  // LayerOptions::tanh_gelu() is true, in its tanh form.
  at::Tensor ForwardGelu(const at::Tensor& x) const;
  // residual += Forward(x), in one pass if the library supports it.
  void AddTo(Residual& residual, const at::Tensor& x) const;

 private:
  // What multiplies: ops::Gemm (fused fp32), oneDNN (fused bf16 if the
  // processor supports it), the device, or libtorch's addmm.
  enum class Multiplier { kGemm, kOneDnn, kDevice, kPlain };

  static Multiplier ChooseMultiplier(const LayerOptions& options,
                                     bool on_device);

  // Forward() and ForwardGelu() for x [rows, in].
  at::Tensor ForwardRows(const at::Tensor& rows) const;
  at::Tensor GeluRows(const at::Tensor& rows) const;

  bool fuse_;
  bool tanh_gelu_;
  at::ScalarType type_;  // The compute type.
  Multiplier multiplier_;
  int64_t out_;
  ops::PackedWeights packed_;  // For kGemm only.
  at::Tensor weight_;          // [out, in], or packed for kOneDnn.
  at::Tensor bias_;            // [out] or undefined.
  at::Tensor scale_;           // [out], undefined if folded or absent.
};

}  // namespace sfmamba::layers

#endif  // SFMAMBA_MODEL_LAYERS_LINEAR_H_
