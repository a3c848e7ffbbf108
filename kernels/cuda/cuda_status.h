#ifndef SFMAMBA_KERNELS_CUDA_CUDA_STATUS_H_
#define SFMAMBA_KERNELS_CUDA_CUDA_STATUS_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace sfmamba::kernels {

// What a call of the CUDA runtime came to, with `what` it was for. Too little
// memory is RESOURCE_EXHAUSTED, any other error INTERNAL. The runtime forgets
// it, unless it is for good: others on this thread, such as libtorch, would
// take it for their own.
inline absl::Status CudaStatus(cudaError_t error, absl::string_view what) {
  if (error == cudaSuccess) return absl::OkStatus();
  cudaGetLastError();
  const std::string message =
      absl::StrCat(what, ": ", cudaGetErrorString(error));
  if (error == cudaErrorMemoryAllocation) {
    return absl::ResourceExhaustedError(message);
  }
  return absl::InternalError(message);
}

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_CUDA_CUDA_STATUS_H_
