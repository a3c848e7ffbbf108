#ifndef SFMAMBA_KERNELS_SEQUENCE_DEPTHWISE_CONV1D_CUDA_H_
#define SFMAMBA_KERNELS_SEQUENCE_DEPTHWISE_CONV1D_CUDA_H_

#include "absl/status/status.h"
#include "kernels/cuda/cuda_stream.h"
#include "kernels/sequence/depthwise_conv1d.h"

namespace sfmamba::kernels {

// Runs the `count` convolutions in `parts` in one launch. `count` must be 1 or
// 2. kernels/sequence/depthwise_conv1d.h defines the convolution. Two
// convolutions can, for example, read the two halves of a projection's output
// and write to two different tensors. All convolutions must have the same
// taps, left, silu and sequences. There must be 3 centred taps (left = 1) or 4
// causal taps (left = 3).
//
// Enqueues the work on `stream` and does not wait for it. Returns
// INVALID_ARGUMENT for other taps or counts, and INTERNAL if CUDA refuses the
// launch. `parts` must be in host memory. All pointers in its elements,
// including offsets, are device pointers. T is float, BFloat16 or Float16. A
// sequence's output bits depend on this sequence alone. The kernel is fastest
// if pointers and strides are multiples of 16 bytes.
template <typename T>
absl::Status DepthwiseConv1dCuda(const DepthwiseConv1dArgs<T>* parts, int count,
                                 CudaStream stream);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SEQUENCE_DEPTHWISE_CONV1D_CUDA_H_
