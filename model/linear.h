#ifndef SFMAMBA_MODEL_LINEAR_H_
#define SFMAMBA_MODEL_LINEAR_H_

#include "ATen/core/Tensor.h"
#include "model/fuse.h"
#include "model/layer_options.h"

namespace sfmamba {

// y = (x W^T + b) * scale over the last axis of x. Immutable, so thread-safe.
//
// In fp32 (MKL) the answer has the same bits with any number of threads: they
// share the rows out, and each part is a product on one thread, which rounds a
// row alike from four rows on. That is measured and tested, not promised by
// MKL. Fewer than eight rows are repeated for it.
class Linear {
 public:
  // scale [out] is a layer scale, undefined where there is none.
  Linear(const Weights& weights, const at::Tensor& scale,
         const LayerOptions& options);

  // Takes "weight" [out, in] and, if `bias`, "bias" [out] from `scope`.
  static Weights Take(const StateDict::Scope& scope, int in, int out,
                      bool bias);

  // [..., in] to [..., out] of the compute type (fp32 or bf16).
  at::Tensor forward(const at::Tensor& x) const;
  // The same, then GELU in its exact (erf) form.
  at::Tensor ForwardGelu(const at::Tensor& x) const;
  // residual += forward(x). residual [..., out] is contiguous fp32.
  void AddTo(at::Tensor& residual, const at::Tensor& x) const;

 private:
  // x W^T + bias (may be undefined) of x [rows, in], not packed.
  at::Tensor Multiply(const at::Tensor& x, const at::Tensor& bias) const;
  at::Tensor ForwardRows(const at::Tensor& rows) const;
  at::Tensor GeluRows(const at::Tensor& rows) const;
  void AddRows(at::Tensor& residual, const at::Tensor& rows) const;
  bool half() const { return options_.precision == Precision::kBFloat16; }

  LayerOptions options_;
  bool packed_;  // weight_ is oneDNN's.
  int64_t in_, out_;
  // [in, out], contiguous if fused (MKL is a little faster so), or packed.
  at::Tensor weight_;
  at::Tensor bias_;   // [out] or undefined.
  at::Tensor scale_;  // [out], undefined if folded or absent.
};

}  // namespace sfmamba

#endif  // SFMAMBA_MODEL_LINEAR_H_
