#ifndef SFMAMBA_KERNELS_PYTHON_NVCC_SIMT_SIMT_H_
#define SFMAMBA_KERNELS_PYTHON_NVCC_SIMT_SIMT_H_

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>

#include "kernels/base/bfloat16.h"
#include "kernels/cuda/cuda_stream.h"

// What the package's kernels use of kernels/cuda/nvcc/simt/simt.h, which has
// the contracts, without Abseil: setup.py compiles with this header.
namespace sfmamba::simt {

__device__ __forceinline__ float ToFloat(float x) { return x; }
__device__ __forceinline__ float ToFloat(kernels::BFloat16 x) {
  return __uint_as_float(static_cast<uint32_t>(x.bits) << 16);
}

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

template <typename T, int N>
struct alignas(16) Shared {
  T values[N];

  __device__ __forceinline__ T& operator[](int i) { return values[i]; }
};

// In place of absl::Status: the message is empty if a kernel was enqueued.
class LaunchStatus {
 public:
  explicit LaunchStatus(std::string message) : message_(std::move(message)) {}
  const std::string& message() const { return message_; }

 private:
  std::string message_;
};

template <typename... Parameters, typename... Args>
LaunchStatus Launch(const char* name, void (*kernel)(Parameters...),
                    dim3 blocks, dim3 threads, kernels::CudaStream stream,
                    Args&&... args) {
  if (blocks.x == 0) return LaunchStatus("");
  std::tuple<Parameters...> values(std::forward<Args>(args)...);
  const cudaError_t error = std::apply(
      [&](Parameters&... each) {
        void* pointers[] = {&each...};
        return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), blocks,
                                threads, pointers, /*sharedMem=*/0, stream);
      },
      values);
  if (error == cudaSuccess) return LaunchStatus("");
  return LaunchStatus(std::string(name) + ": " + cudaGetErrorString(error));
}

}  // namespace sfmamba::simt

#endif  // SFMAMBA_KERNELS_PYTHON_NVCC_SIMT_SIMT_H_
