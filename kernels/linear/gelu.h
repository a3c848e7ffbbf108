#ifndef SFMAMBA_KERNELS_LINEAR_GELU_H_
#define SFMAMBA_KERNELS_LINEAR_GELU_H_

#include <cstdint>

#include "kernels/base/bfloat16.h"
#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// y = gelu(x + bias), row by row. A contiguous array without bias can be passed
// as one row.
template <typename T>
struct GeluArgs {
  int64_t rows;
  int64_t channels;
  const T* x;  // [rows, channels], rows x_stride apart
  int64_t x_stride;
  T* y;  // [rows, channels], rows y_stride apart; may be x itself
  int64_t y_stride;
  const float* bias = nullptr;  // [channels], or null for none
};

// Computes gelu(v) = v/2 * (1 + erf(v / sqrt(2))), the form that transformer
// MLPs use.
//
// GeluErfCpu() and GeluTanhCpu() run on the calling thread. T is float or
// BFloat16. The arithmetic is fp32.
template <typename T>
void GeluErfCpu(const GeluArgs<T>& args, CpuIsa isa = ActiveCpuIsa());

// Computes gelu(v) = v/2 * (1 + tanh(sqrt(2/pi) * (v + 0.044715 v^3))), the
// form that the convolution blocks use. The result differs from GeluErfCpu() by
// at most 4.7e-4.
template <typename T>
void GeluTanhCpu(const GeluArgs<T>& args, CpuIsa isa = ActiveCpuIsa());

// GeluErfCpu() and GeluTanhCpu() call one of these, depending on the
// instruction set.
template <typename T>
void GeluErfScalar(const GeluArgs<T>& args);
template <typename T>
void GeluErfAvx2(const GeluArgs<T>& args);
template <typename T>
void GeluErfAvx512(const GeluArgs<T>& args);
template <typename T>
void GeluTanhScalar(const GeluArgs<T>& args);
template <typename T>
void GeluTanhAvx2(const GeluArgs<T>& args);
template <typename T>
void GeluTanhAvx512(const GeluArgs<T>& args);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_LINEAR_GELU_H_
