// Device code that the CUDA kernels of sfmamba_scan share. Besides the
// functions of simt/simt.h, the kernels use std::exp and std::log1p. nvcc and
// the emulator's compiler both have these for float and double.
#ifndef SFMAMBA_KERNELS_PYTHON_DEVICE_REAL_H_
#define SFMAMBA_KERNELS_PYTHON_DEVICE_REAL_H_

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernels/python/strided.h"
#include "simt/simt.h"

namespace sfmamba::kernels {

// Returns `x` in the type in which kernels compute.
template <typename T>
__device__ __forceinline__ Arithmetic<T> ToReal(T x) {
  if constexpr (std::is_same_v<T, double>) {
    return x;
  } else {
    return simt::ToFloat(x);
  }
}

// Rounds `x` to T.
template <typename T>
__device__ __forceinline__ T FromReal(Arithmetic<T> x) {
  if constexpr (std::is_same_v<T, double>) {
    return x;
  } else {
    return simt::FromFloat<T>(x);
  }
}

// Returns the address of a row's token 0.
template <typename T>
__device__ __forceinline__ T* RowOf(const StridedBatch<T>& x, int image,
                                    int group, int row) {
  return x.data + image * x.image + group * x.group + row * x.row;
}

// Computes SiLU(x) = x / (1 + exp(-x)) and its derivative.
template <typename Real>
struct Silu {
  __device__ __forceinline__ explicit Silu(Real x) {
    const Real sigmoid = 1 / (1 + std::exp(-x));
    value = x * sigmoid;
    slope = sigmoid + value * (1 - sigmoid);
  }
  Real value, slope;
};

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_PYTHON_DEVICE_REAL_H_
