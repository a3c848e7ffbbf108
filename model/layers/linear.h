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
// Fused in fp32 on the CPU, a row's answer has the same bits beside any other
// rows and with any number of threads.
class Linear {
 public:
  // scale [out] is a layer scale, undefined where there is none.
  Linear(const Weights& weights, const at::Tensor& scale,
         const LayerOptions& options);

  // Takes "weight" [out, in] and, if `bias`, "bias" [out] from `scope`.
  static Weights Take(const weights::StateDict::Scope& scope, int in, int out,
                      bool bias);

  // [..., in] to [..., out] of the compute type.
  at::Tensor Forward(const at::Tensor& x) const;
  // The same, then GELU: its erf form or, where LayerOptions says so, tanh.
  at::Tensor ForwardGelu(const at::Tensor& x) const;
  // residual += Forward(x), in one pass where the library can.
  void AddTo(Residual& residual, const at::Tensor& x) const;

 private:
  // Who multiplies: ops::Product (fused fp32), oneDNN (fused bf16 where the
  // processor has it), the device, or libtorch's addmm.
  enum class Multiplier { kGemm, kOneDnn, kDevice, kPlain };

  static Multiplier ChooseMultiplier(const LayerOptions& options,
                                     bool on_device);

  // Of [rows, in].
  at::Tensor ForwardRows(const at::Tensor& rows) const;
  at::Tensor GeluRows(const at::Tensor& rows) const;

  bool fuse_;
  bool tanh_gelu_;
  at::ScalarType type_;  // What it computes in.
  Multiplier multiplier_;
  int64_t out_;
  ops::PackedWeights packed_;  // kGemm's.
  at::Tensor weight_;          // oneDNN's own, or [out, in].
  at::Tensor bias_;            // [out] or undefined.
  at::Tensor scale_;           // [out], undefined if folded or absent.
};

}  // namespace sfmamba::layers

#endif  // SFMAMBA_MODEL_LAYERS_LINEAR_H_
