#ifndef SFMAMBA_KERNELS_GELU_CUDA_H_
#define SFMAMBA_KERNELS_GELU_CUDA_H_

#include "absl/status/status.h"
#include "kernels/cuda_stream.h"
#include "kernels/gelu.h"

namespace sfmamba {

// y = gelu(x + bias) in the two forms of kernels/gelu.h; y may be x.
//
// Enqueues on `stream` and returns; INTERNAL if the launch is refused. All
// pointers in `args` are the device's. T is float, BFloat16 or Float16. Fastest
// where rows and pointers are multiples of 16 bytes.
template <typename T>
absl::Status GeluErfCuda(const GeluArgs<T>& args, CudaStream stream);
template <typename T>
absl::Status GeluTanhCuda(const GeluArgs<T>& args, CudaStream stream);

}  // namespace sfmamba

#endif  // SFMAMBA_KERNELS_GELU_CUDA_H_
