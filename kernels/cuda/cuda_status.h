#ifndef SFMAMBA_KERNELS_CUDA_CUDA_STATUS_H_
#define SFMAMBA_KERNELS_CUDA_CUDA_STATUS_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace sfmamba::kernels {

// Converts the result of a CUDA runtime call to a status. `what` names the call
// in the error message. Returns RESOURCE_EXHAUSTED if an allocation failed, and
// INTERNAL for any other error.
//
// Also clears the thread's last CUDA error. Otherwise later calls of other
// libraries, such as libtorch, would report it as their error. Errors that
// corrupt the CUDA context cannot be cleared.
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
