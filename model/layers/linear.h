#ifndef SFMAMBA_MODEL_LAYERS_LINEAR_H_
#define SFMAMBA_MODEL_LAYERS_LINEAR_H_

#include <memory>

#include "ATen/core/Tensor.h"
#include "model/ops/implementation.h"
#include "model/weights/state_dict.h"

namespace sfmamba::layers {

// A linear layer over the last axis of x. Immutable, so thread-safe.
class Linear {
 public:
  Linear(const ops::LinearParameters& parameters,
         const ops::Implementation& implementation)
      : op_(implementation.MakeLinear(parameters)) {}

  // Takes "weight" [out, in] and, if `bias`, "bias" [out] from `scope`.
  static ops::Weights Take(const weights::StateDict::Scope& scope, int in,
                           int out, bool bias);

  // Maps x [..., in] to [..., out].
  at::Tensor Forward(const at::Tensor& x) const { return op_->Forward(x); }
  // Computes residual += Forward(x). The layer must have no epilogue.
  void AddTo(ops::Residual& residual, const at::Tensor& x) const {
    op_->AddTo(residual, x);
  }

 private:
  std::unique_ptr<const ops::LinearOp> op_;
};

}  // namespace sfmamba::layers

#endif  // SFMAMBA_MODEL_LAYERS_LINEAR_H_
