#ifndef SFMAMBA_KERNELS_SEQUENCE_DEPTHWISE_CONV1D_CUDA_H_
#define SFMAMBA_KERNELS_SEQUENCE_DEPTHWISE_CONV1D_CUDA_H_

#include "absl/status/status.h"
#include "kernels/cuda/cuda_stream.h"
#include "kernels/sequence/depthwise_conv1d.h"

namespace sfmamba::kernels {

// Runs `count` convolutions of kernels/sequence/depthwise_conv1d.h in one
// launch. `count` is 1 or 2, so that the two halves of a projection's output
// can be written to two places. All parts must have the same taps, left, silu
// and sequences. The taps are 3, centred (left = 1), or 4, causal (left = 3).
//
// Enqueues on `stream` and returns. INVALID_ARGUMENT for other taps or counts,
// INTERNAL if the launch is refused. `parts` is host memory; all pointers in
// it, offsets included, are device pointers. T is float, BFloat16 or Float16. A
// sequence's output bits depend on that sequence alone. Fastest where pointers
// and strides are multiples of 16 bytes.
template <typename T>
absl::Status DepthwiseConv1dCuda(const DepthwiseConv1dArgs<T>* parts, int count,
                                 CudaStream stream);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SEQUENCE_DEPTHWISE_CONV1D_CUDA_H_
