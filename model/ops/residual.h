#ifndef SFMAMBA_MODEL_OPS_RESIDUAL_H_
#define SFMAMBA_MODEL_OPS_RESIDUAL_H_

#include <utility>

#include "ATen/core/Tensor.h"

namespace sfmamba::ops {

// A residual stream: x [rows, tokens, width], contiguous, which layers add to.
// Its type is the implementation's.
class Residual {
 public:
  // x's memory must not be shared.
  explicit Residual(at::Tensor x) : x_(std::move(x)) {}

  // Returns x with everything that was added. The caller may change or replace
  // it.
  at::Tensor& Sum();
  at::IntArrayRef sizes() const { return x_.sizes(); }
  at::ScalarType scalar_type() const { return x_.scalar_type(); }
  // Reshapes x to the same values in rows of another length.
  void View(at::IntArrayRef sizes) { x_ = x_.view(sizes); }

  // ---- For operators ----

  // x += y, at once. y has as many values as x, in the same order.
  void Add(const at::Tensor& y);
  // x += y, later: y waits until the next Sum(), or until a LayerNorm takes it.
  // The norm reads x anyway, so that the addition costs no pass over memory.
  void AddLater(const at::Tensor& y);
  // Returns x without what waits, and what waits, which is undefined if nothing
  // does. The caller must add it to x.
  std::pair<at::Tensor, at::Tensor> TakeParts();

 private:
  at::Tensor x_;
  at::Tensor waiting_;  // Still to be added to x_; undefined if nothing is.
};

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_RESIDUAL_H_
