#ifndef SFMAMBA_MODEL_OPS_KERNEL_TYPES_H_
#define SFMAMBA_MODEL_OPS_KERNEL_TYPES_H_

#include "ATen/core/Tensor.h"
#include "kernels/base/bfloat16.h"
#include "kernels/base/float16.h"
#include "kernels/base/packed_sequences.h"

namespace sfmamba::ops {

// Conversions from tensors to the kernels' types.

static_assert(sizeof(c10::BFloat16) == sizeof(kernels::BFloat16));
static_assert(sizeof(c10::Half) == sizeof(kernels::Float16));

template <typename T>
T* Data(const at::Tensor& x) {
  return static_cast<T*>(x.data_ptr());
}

// Calls body(v), where v has the C++ type that the kernels use for the elements
// of x. The value of v has no meaning. Throws c10::Error if x is not fp32 or
// bf16.
template <typename Body>
void Dispatch(const at::Tensor& x, Body body) {
  if (x.scalar_type() == at::kBFloat16) {
    body(kernels::BFloat16());
  } else {
    TORCH_CHECK(x.scalar_type() == at::kFloat, "expected fp32 or bf16, got ",
                x.scalar_type());
    body(float());
  }
}

// Returns a pointer to the fp32 elements of x, or null if x is undefined.
inline const float* Floats(const at::Tensor& x) {
  return x.defined() ? x.const_data_ptr<float>() : nullptr;
}

// Divides the tokens of x [tokens, ...] into sequences of `length` tokens.
inline kernels::PackedSequences Sequences(const at::Tensor& x, int64_t length) {
  return {static_cast<int>(x.size(0) / length), static_cast<int>(length)};
}

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_KERNEL_TYPES_H_
