#ifndef SFMAMBA_KERNELS_LINEAR_BIAS_ACTIVATION_CUDA_H_
#define SFMAMBA_KERNELS_LINEAR_BIAS_ACTIVATION_CUDA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/base/bfloat16.h"
#include "kernels/base/float16.h"
#include "kernels/cuda/cuda_activation.h"
#include "kernels/cuda/cuda_stream.h"

namespace sfmamba::kernels {

// Bias, activation and residual addition after a convolution or a linear layer,
// in one pass over memory:
//   y[i,c] = activation(x[i,c] + bias[c]) + add[i,c]
// The arithmetic is fp32. The result is rounded to T once, at the end. Every
// activation of a NaN is NaN. GELU of -infinity is NaN, too.
template <typename T>
struct BiasActivationArgs {
  // A contiguous array without bias can be passed as one row.
  int64_t rows;
  int64_t channels;
  const T* x;  // [rows, channels], rows x_stride apart
  int64_t x_stride;
  T* y;  // [rows, channels], rows y_stride apart; may be x itself
  int64_t y_stride;
  CudaActivation activation;
  const float* bias = nullptr;  // [channels], or null for none
  // [rows, channels], rows add_stride apart, or null for none; may be y itself.
  const T* add = nullptr;
  int64_t add_stride = 0;
};

// Enqueues the kernel on `stream` and returns. Returns INTERNAL if CUDA refuses
// the launch. All pointers in `args` are device pointers. T is float, BFloat16
// or Float16.
//
// The kernel reads x and `add` once and writes y once. It is fastest if all
// pointers and strides are multiples of 16 bytes.
template <typename T>
absl::Status BiasActivationCuda(const BiasActivationArgs<T>& args,
                                CudaStream stream);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_LINEAR_BIAS_ACTIVATION_CUDA_H_
