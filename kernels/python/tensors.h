// Functions that the operators of sfmamba_scan share. They check tensors, find
// rows of tensors, and divide work among PyTorch's threads.
#ifndef SFMAMBA_KERNELS_PYTHON_TENSORS_H_
#define SFMAMBA_KERNELS_PYTHON_TENSORS_H_

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "kernels/base/bfloat16.h"
#include "kernels/python/strided.h"

namespace sfmamba::kernels {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

// Throws ValueError unless the tensor has this shape, type and device.
inline void Expect(const char* name, const Tensor& tensor,
                   at::IntArrayRef shape, const at::TensorOptions& options) {
  const auto type = at::typeMetaToScalarType(options.dtype());
  TORCH_CHECK_VALUE(tensor.sizes() == shape, name, ": expected shape ", shape,
                    ", got ", tensor.sizes());
  TORCH_CHECK_VALUE(tensor.scalar_type() == type, name, ": expected ", type,
                    ", got ", tensor.scalar_type());
  TORCH_CHECK_VALUE(tensor.device() == options.device(), name,
                    ": expected a tensor on ", options.device(), ", got ",
                    tensor.device());
}

inline void ExpectDimensions(const char* name, const Tensor& tensor,
                             int64_t count, const char* shape) {
  TORCH_CHECK_VALUE(tensor.dim() == count, name, ": expected ", shape,
                    ", got shape ", tensor.sizes());
}

// Returns the type in which the kernels compute on tensors of `type`.
inline at::ScalarType ArithmeticType(at::ScalarType type) {
  return type == at::kDouble ? at::kDouble : at::kFloat;
}

// Returns the tensor with row-major values. Copies it only if its values are
// not row-major.
inline OptionalTensor Contiguous(const OptionalTensor& tensor) {
  if (!tensor.has_value()) return std::nullopt;
  return tensor->contiguous();
}

template <typename T>
T* Data(const Tensor& tensor) {
  return static_cast<T*>(tensor.data_ptr());
}

template <typename T>
T* DataOrNull(const OptionalTensor& tensor) {
  return tensor.has_value() ? Data<T>(*tensor) : nullptr;
}

// Returns rows `row` and higher of image b of `tensor`, which is [batch, rows,
// tokens].
template <typename T>
Strided<T> Rows(const Tensor& tensor, int64_t b, int64_t row) {
  const int64_t first = b * tensor.stride(0) + row * tensor.stride(1);
  return {Data<std::remove_const_t<T>>(tensor) + first, tensor.stride(1),
          tensor.stride(2)};
}

template <typename T>
Strided<T> RowsOrNull(const OptionalTensor& tensor, int64_t b, int64_t row) {
  return tensor.has_value() ? Rows<T>(*tensor, b, row) : Strided<T>{};
}

// Calls f(T()), where T is the kernels' C++ type for `type`. Throws ValueError
// if the kernels do not support `type`.
template <typename F>
void WithType(at::ScalarType type, F f) {
  if (type == at::kFloat) return f(float());
  if (type == at::kBFloat16) return f(BFloat16());
  if (type == at::kDouble) return f(double());
  TORCH_CHECK_VALUE(false, "expected float32, bfloat16 or float64, got ", type);
}

inline int64_t Period(int64_t period) {
  TORCH_CHECK_VALUE(period >= 0, "period: expected at least 1, got ", period);
  return period == 0 ? std::numeric_limits<int64_t>::max() : period;
}

// Calls f(task, scratch) for each task, on PyTorch's threads. `scratch` has
// room for `size` values, which no other thread uses at the same time.
template <typename Real, typename Task, typename F>
void ForEachTask(const std::vector<Task>& tasks, int64_t size, F f) {
  at::parallel_for(0, tasks.size(), 1, [&](int64_t begin, int64_t end) {
    const std::unique_ptr<Real[]> scratch(new Real[size]);
    for (int64_t i = begin; i < end; ++i) f(tasks[i], scratch.get());
  });
}

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_PYTHON_TENSORS_H_
