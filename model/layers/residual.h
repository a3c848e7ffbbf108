#ifndef SFMAMBA_MODEL_LAYERS_RESIDUAL_H_
#define SFMAMBA_MODEL_LAYERS_RESIDUAL_H_

#include <cstdint>
#include <utility>

#include "ATen/core/Tensor.h"

namespace sfmamba::layers {

// A residual stream: x [rows, tokens, width], contiguous, which layers add to.
// It is fp32 or, on a device, maybe of the compute type.
//
// On a device what a layer gave may wait for the next LayerNorm, which reads x
// anyway and adds it on the way: one pass over memory less.
class Residual {
 public:
  // x's memory is not shared.
  explicit Residual(at::Tensor x) : x_(std::move(x)) {}

  // x, with all that was added; to be changed or replaced at will.
  at::Tensor& Sum();
  at::IntArrayRef sizes() const { return x_.sizes(); }
  at::ScalarType scalar_type() const { return x_.scalar_type(); }
  // The same values in rows of another length.
  void View(at::IntArrayRef sizes) { x_ = x_.view(sizes); }

  // x += y: y has the values of x in its order and, on a device, the type that
  // Normalized() gives.
  void Add(const at::Tensor& y);

  // ops::LayerNorm of Sum().
  at::Tensor Normalized(const at::Tensor& gamma, const at::Tensor& beta,
                        int64_t length, bool swap, at::ScalarType type);

 private:
  at::Tensor x_;
  at::Tensor waiting_;  // To be added to x_; undefined: nothing.
};

}  // namespace sfmamba::layers

#endif  // SFMAMBA_MODEL_LAYERS_RESIDUAL_H_
