#ifndef SFMAMBA_KERNELS_SEQUENCE_TOKEN_MEAN_CUDA_H_
#define SFMAMBA_KERNELS_SEQUENCE_TOKEN_MEAN_CUDA_H_

#include "absl/status/status.h"
#include "kernels/cuda/cuda_stream.h"
#include "kernels/sequence/token_mean.h"

namespace sfmamba::kernels {

// The means of kernels/sequence/token_mean.h, bit-identical to those of
// TokenMeanScalar.
//
// Enqueues on `stream` and returns. INTERNAL if the launch is refused. All
// pointers in `args`, offsets included, are device pointers. T is float,
// BFloat16 or Float16. Fastest where pointers and strides are multiples of 16
// bytes.
template <typename T>
absl::Status TokenMeanCuda(const TokenMeanArgs<T>& args, CudaStream stream);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SEQUENCE_TOKEN_MEAN_CUDA_H_
