#ifndef SFMAMBA_MODEL_OPS_RESIDUAL_H_
#define SFMAMBA_MODEL_OPS_RESIDUAL_H_

#include <utility>

#include "ATen/core/Tensor.h"

namespace sfmamba::ops {

// A residual stream: a contiguous tensor x [rows, tokens, width], which layers
// add to. The implementation chooses its type.
class Residual {
 public:
  // No other tensor may share x's memory.
  explicit Residual(at::Tensor x) : x_(std::move(x)) {}

  // Returns x with everything that was added. The caller may change or replace
  // the tensor.
  at::Tensor& Sum();
  at::IntArrayRef sizes() const { return x_.sizes(); }
  at::ScalarType scalar_type() const { return x_.scalar_type(); }
  // Changes x's shape to `sizes`. The values stay the same.
  void View(at::IntArrayRef sizes) { x_ = x_.view(sizes); }

  // ---- For operators ----

  // x += y, at once. y has as many values as x, in the same order.
  void Add(const at::Tensor& y);
  // x += y, but later: in the next Sum(), or in the next LayerNorm, which calls
  // TakeParts(). The norm reads x anyway, so the addition needs no additional
  // pass over memory.
  void AddLater(const at::Tensor& y);
  // Returns x and the tensor that is still to be added to it, which is
  // undefined if there is none. The caller must add the two.
  std::pair<at::Tensor, at::Tensor> TakeParts();

 private:
  at::Tensor x_;
  at::Tensor waiting_;  // Still to be added to x_, or undefined.
};

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_RESIDUAL_H_
