#ifndef SFMAMBA_KERNELS_PYTHON_STRIDED_H_
#define SFMAMBA_KERNELS_PYTHON_STRIDED_H_

#include <cstdint>

#include "kernels/base/bfloat16.h"

namespace sfmamba::kernels {

// A tensor [rows, tokens] of any layout, which is not owned. Rows are channels
// or states. `data` may be null only where a comment says so. Kernels are
// fastest if one of the two strides is 1.
template <typename T>
struct Strided {
  T* data = nullptr;
  int64_t row = 0, token = 0;  // Strides in elements.
};

// A tensor [images, groups, rows, tokens] of any layout.
template <typename T>
struct StridedBatch {
  T* data = nullptr;
  int64_t image = 0, group = 0, row = 0, token = 0;  // Strides in elements.
};

// The type in which kernels compute on tensors of T. It is double for double,
// and float for all other types.
template <typename T>
struct ArithmeticOf {
  using Type = float;
};
template <>
struct ArithmeticOf<double> {
  using Type = double;
};
template <typename T>
using Arithmetic = typename ArithmeticOf<T>::Type;

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_PYTHON_STRIDED_H_
