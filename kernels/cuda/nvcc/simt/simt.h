#ifndef SFMAMBA_KERNELS_CUDA_NVCC_SIMT_SIMT_H_
#define SFMAMBA_KERNELS_CUDA_NVCC_SIMT_SIMT_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/cuda/cuda_stream.h"
#include "kernels/cuda/nvcc/simt/device.h"

// The functions and types that kernels (.cu files) use beyond plain CUDA C++.
// nvcc compiles this header. A host compiler uses tests/emulator/simt/simt.h
// instead, which declares the same names. BUILD decides which of the two
// headers is included as "simt/simt.h".
//
// So that nvcc and a host compiler can compile the same source, kernels use
// only:
//   - threadIdx, blockIdx, blockDim, gridDim, dim3, __syncthreads, __syncwarp,
//     __shfl_sync, __shfl_up_sync, __shfl_down_sync, __shfl_xor_sync,
//     __ballot_sync, __any_sync, __all_sync, atomicAdd, atomicMax, atomicMin,
//     atomicCAS, atomicOr, __popc, __ffs, __clz, __float_as_int,
//     __int_as_float, fmaf, fminf, fmaxf, min, max, rsqrtf, sqrtf, floorf,
//     ceilf;
//   - shared memory as `__shared__ simt::Shared<float, 64> tile;`, at most
//     48 KB per block, never dynamic.
// Every thread of a block must reach each __syncthreads. Kernels contain no
// inline PTX, no <<<>>>, no warp-synchronous assumption, no local statics, no
// printf.
namespace sfmamba::simt {

// Enqueues `kernel` on `stream` and returns. If CUDA refuses the launch,
// returns INTERNAL with `name` in the message. Does nothing for an empty grid.
template <typename... Parameters, typename... Args>
absl::Status Launch(const char* name, void (*kernel)(Parameters...),
                    dim3 blocks, dim3 threads, kernels::CudaStream stream,
                    Args&&... args) {
  const cudaError_t error =
      Enqueue(kernel, blocks, threads, stream, std::forward<Args>(args)...);
  if (error == cudaSuccess) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(name, ": the launch of ", blocks.x, "x", blocks.y, "x",
                   blocks.z, " blocks of ", threads.x, "x", threads.y, "x",
                   threads.z, " threads failed: ", cudaGetErrorString(error)));
}

}  // namespace sfmamba::simt

#endif  // SFMAMBA_KERNELS_CUDA_NVCC_SIMT_SIMT_H_
