#ifndef SFMAMBA_KERNELS_SEQUENCE_DEPTHWISE_CONV1D_CUDA_H_
#define SFMAMBA_KERNELS_SEQUENCE_DEPTHWISE_CONV1D_CUDA_H_

#include "absl/status/status.h"
#include "kernels/cuda/cuda_stream.h"
#include "kernels/sequence/depthwise_conv1d.h"

namespace sfmamba::kernels {

// The convolutions of kernels/sequence/depthwise_conv1d.h, `parts` 0 to
// count-1, by one launch; `count` is 1 or 2: both halves of a projection's
// output go to destinations of their own. Parts agree in taps, left, silu and
// sequences; the taps are 3, centred (left 1), or 4, causal (left 3), else
// INVALID_ARGUMENT.
//
// Enqueues on `stream` and returns; INTERNAL if the launch is refused. `parts`
// itself is host memory, all pointers in it, offsets included, are the
// device's. T is float, BFloat16 or Float16. A sequence's bits depend on
// nothing but itself. Fastest where rows and pointers are multiples of 16
// bytes.
template <typename T>
absl::Status DepthwiseConv1dCuda(const DepthwiseConv1dArgs<T>* parts, int count,
                                 CudaStream stream);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SEQUENCE_DEPTHWISE_CONV1D_CUDA_H_
