#ifndef SFMAMBA_MODEL_OPS_RESIDUAL_H_
#define SFMAMBA_MODEL_OPS_RESIDUAL_H_

#include <utility>

#include "ATen/core/Tensor.h"

namespace sfmamba::ops {

// A residual stream: a contiguous tensor x [rows, tokens, width], which layers
// add to. The implementation chooses its type.
class Residual {
 public:
  // No other tensor may share the memory of x.
  explicit Residual(at::Tensor x) : x_(std::move(x)) {}

  // Returns x with everything that was added. The caller may change or replace
  // the tensor.
  at::Tensor& Sum();
  at::IntArrayRef sizes() const { return x_.sizes(); }
  at::ScalarType scalar_type() const { return x_.scalar_type(); }
  // Changes x's shape to `sizes`. The values stay the same.
  void View(at::IntArrayRef sizes) { x_ = x_.view(sizes); }

  // ---- For operators ----

  // Computes x += y at once. y has as many values as x, in the same order.
  void Add(const at::Tensor& y);
  // Computes x += y later. The next Sum() or the next LayerNorm adds y. The
  // LayerNorm calls TakeParts() and reads x anyway, so the addition needs no
  // additional pass over memory.
  void AddLater(const at::Tensor& y);
  // Returns x and the tensor that must still be added to x. The latter is
  // undefined if there is none. The caller must add the two.
  std::pair<at::Tensor, at::Tensor> TakeParts();

 private:
  at::Tensor x_;
  at::Tensor waiting_;  // Must still be added, or undefined.
};

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_RESIDUAL_H_
