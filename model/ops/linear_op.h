#ifndef SFMAMBA_MODEL_OPS_LINEAR_OP_H_
#define SFMAMBA_MODEL_OPS_LINEAR_OP_H_

#include "ATen/core/Tensor.h"
#include "model/ops/residual.h"
#include "model/ops/weight_transforms.h"

namespace sfmamba::ops {

// The activation that a linear layer applies to its product.
enum class Epilogue { kNone, kGelu };

struct LinearParameters {
  Weights weights;   // [out, in] and [out]; the bias may be undefined.
  at::Tensor scale;  // [out], a layer scale, or undefined.
  Epilogue epilogue = Epilogue::kNone;
  // Whether the result is an output of the network, such as logits or deltas of
  // boxes.
  bool is_output = false;
  // Whether only linear operators and attention read the result. It may then
  // have the type in which they multiply.
  bool feeds_products = false;
};

// Computes y = epilogue((x W^T + bias) * scale) over the last axis of x.
// Immutable, so thread-safe.
class LinearOp {
 public:
  virtual ~LinearOp() = default;

  // Maps x [..., in] to [..., out] in new memory.
  virtual at::Tensor Forward(const at::Tensor& x) const = 0;
  // Computes residual += Forward(x). Requires Epilogue::kNone.
  virtual void AddTo(Residual& residual, const at::Tensor& x) const = 0;
};

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_LINEAR_OP_H_
