#ifndef SFMAMBA_KERNELS_CUDA_NVCC_SIMT_DEVICE_H_
#define SFMAMBA_KERNELS_CUDA_NVCC_SIMT_DEVICE_H_

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <tuple>
#include <utility>

#include "kernels/base/bfloat16.h"
#include "kernels/base/float16.h"
#include "kernels/cuda/cuda_stream.h"

// This header declares everything that simt.h declares, except Launch(), which
// needs Abseil. The package in kernels/python is compiled without Abseil and
// has its own Launch().
namespace sfmamba::simt {

// ---- Arithmetic: the hardware's approximate instructions ----

// Returns 2^x with a relative error of 2^-22. Subnormal results become 0.
__device__ __forceinline__ float Exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Returns log2(x). For x in [0.5, 2] the absolute error is 2^-22. For other x
// the relative error is 2^-22.
__device__ __forceinline__ float Log2(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Returns 1 / x with a relative error of 2^-23, and 0 if |x| is infinite or
// above 2^126.
__device__ __forceinline__ float Reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// ---- Arithmetic: one instruction each ----

// These return the minimum and the maximum. -0 is less than 0. The result is
// NaN if either argument is NaN.
__device__ __forceinline__ float Min(float x, float y) {
  float least;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(least) : "f"(x), "f"(y));
  return least;
}
__device__ __forceinline__ float Max(float x, float y) {
  float most;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(most) : "f"(x), "f"(y));
  return most;
}

// ---- Element types: float, BFloat16, Float16 ----

__device__ __forceinline__ float ToFloat(float x) { return x; }
__device__ __forceinline__ float ToFloat(kernels::BFloat16 x) {
  return __uint_as_float(static_cast<uint32_t>(x.bits) << 16);
}
__device__ __forceinline__ float ToFloat(kernels::Float16 x) {
  return __half2float(__ushort_as_half(x.bits));
}

// Rounds to nearest, ties to even.
template <typename T>
__device__ __forceinline__ T FromFloat(float x);
template <>
__device__ __forceinline__ float FromFloat<float>(float x) {
  return x;
}
template <>
__device__ __forceinline__ kernels::BFloat16 FromFloat<kernels::BFloat16>(
    float x) {
  kernels::BFloat16 y;
  y.bits = __bfloat16_as_ushort(__float2bfloat16_rn(x));
  return y;
}
template <>
__device__ __forceinline__ kernels::Float16 FromFloat<kernels::Float16>(
    float x) {
  kernels::Float16 y;
  y.bits = __half_as_ushort(__float2half_rn(x));
  return y;
}

// ---- Memory ----

// N values that one instruction loads or stores. N is a power of two. The
// values take at most 16 bytes.
template <typename T, int N>
struct alignas(sizeof(T) * N) Vector {
  T values[N];

  __device__ __forceinline__ T& operator[](int i) { return values[i]; }
  __device__ __forceinline__ const T& operator[](int i) const {
    return values[i];
  }
};

// These load and store N values. `from` and `to` must be aligned to N values.
template <int N, typename T>
__device__ __forceinline__ Vector<T, N> Load(const T* from) {
  return *reinterpret_cast<const Vector<T, N>*>(from);
}
template <int N, typename T>
__device__ __forceinline__ void Store(T* to, const Vector<T, N>& vector) {
  *reinterpret_cast<Vector<T, N>*>(to) = vector;
}

// Returns `offset` and hides from the compiler how `offset` was computed. Use
// Opaque() for the address of a Store() in an unrolled loop:
//   Store(to + Opaque(offset), vector)
// Without Opaque(), the compiler may compute the address of each value
// separately and split the Store() into several stores of one value each.
__device__ __forceinline__ int64_t Opaque(int64_t offset) {
  asm("" : "+l"(offset));
  return offset;
}

// An array in shared memory. T must have a trivial constructor, like float, int
// and uint16_t.
template <typename T, int N>
struct alignas(16) Shared {
  T values[N];

  __device__ __forceinline__ T& operator[](int i) { return values[i]; }
  // These load and store M values with one instruction. `i` must be a multiple
  // of M.
  template <int M>
  __device__ __forceinline__ Vector<T, M> Load(int i) {
    return *reinterpret_cast<const Vector<T, M>*>(values + i);
  }
  template <int M>
  __device__ __forceinline__ void Store(int i, const Vector<T, M>& vector) {
    *reinterpret_cast<Vector<T, M>*>(values + i) = vector;
  }
};

// ---- Launching ----

// Enqueues `kernel` on `stream` and returns. Does nothing for an empty grid.
template <typename... Parameters, typename... Args>
cudaError_t Enqueue(void (*kernel)(Parameters...), dim3 blocks, dim3 threads,
                    kernels::CudaStream stream, Args&&... args) {
  if (blocks.x == 0 || blocks.y == 0 || blocks.z == 0) return cudaSuccess;
  std::tuple<Parameters...> values(std::forward<Args>(args)...);
  return std::apply(
      [&](Parameters&... each) {
        void* pointers[] = {&each...};
        return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), blocks,
                                threads, pointers, /*sharedMem=*/0, stream);
      },
      values);
}

}  // namespace sfmamba::simt

#endif  // SFMAMBA_KERNELS_CUDA_NVCC_SIMT_DEVICE_H_
