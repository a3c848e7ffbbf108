#ifndef SFMAMBA_MODEL_LAYERS_RESIDUAL_H_
#define SFMAMBA_MODEL_LAYERS_RESIDUAL_H_

#include <cstdint>
#include <utility>

#include "ATen/core/Tensor.h"

namespace sfmamba::layers {

// A residual stream: x [rows, tokens, width], contiguous, which layers add to.
// It is fp32 or, on a device, possibly of the compute type.
//
// On a device, a layer's result may be kept until the next LayerNorm, which
// reads x anyway and adds the result to it. This saves a pass over memory.
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

  // x += y. y has as many values as x, in the same order. On a device it has
  // the type that the next Normalized() is called with.
  void Add(const at::Tensor& y);

  // Returns ops::LayerNorm of Sum().
  at::Tensor Normalized(const at::Tensor& gamma, const at::Tensor& beta,
                        int64_t length, bool swap, at::ScalarType type);

 private:
  at::Tensor x_;
  at::Tensor waiting_;  // Still to be added to x_; undefined if nothing is.
};

}  // namespace sfmamba::layers

#endif  // SFMAMBA_MODEL_LAYERS_RESIDUAL_H_
