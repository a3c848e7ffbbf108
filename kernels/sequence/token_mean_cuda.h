#ifndef SFMAMBA_KERNELS_SEQUENCE_TOKEN_MEAN_CUDA_H_
#define SFMAMBA_KERNELS_SEQUENCE_TOKEN_MEAN_CUDA_H_

#include "absl/status/status.h"
#include "kernels/cuda/cuda_stream.h"
#include "kernels/sequence/token_mean.h"

namespace sfmamba::kernels {

// Computes the same means as TokenMeanScalar() in
// kernels/sequence/token_mean.h, bit for bit.
//
// Enqueues the work on `stream` and does not wait for it. Returns INTERNAL if
// CUDA refuses the launch. All pointers in `args`, including offsets, are
// device pointers. T is float, BFloat16 or Float16. The kernel is fastest if
// pointers and strides are multiples of 16 bytes.
template <typename T>
absl::Status TokenMeanCuda(const TokenMeanArgs<T>& args, CudaStream stream);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SEQUENCE_TOKEN_MEAN_CUDA_H_
