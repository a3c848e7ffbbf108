#ifndef SFMAMBA_KERNELS_LINEAR_DEPTHWISE_CONVOLUTION_CUDA_H_
#define SFMAMBA_KERNELS_LINEAR_DEPTHWISE_CONVOLUTION_CUDA_H_

#include "absl/status/status.h"
#include "kernels/base/bfloat16.h"
#include "kernels/base/float16.h"
#include "kernels/cuda/cuda_activation.h"
#include "kernels/cuda/cuda_stream.h"

namespace sfmamba::kernels {

// The convolution of kernels/linear/depthwise_convolution.h, followed by an
// activation. The arithmetic is fp32. The result is rounded to T once, at the
// end.
template <typename T>
struct DepthwiseConvolutionCudaArgs {
  int count, height, width;  // The number and size of the input's maps.
  int channels;
  int kernel, stride;         // `kernel` is 3, 5 or 7. `stride` is 1 or 2.
  const T* x;                 // [count, height, width, channels]
  const float* weight;        // [kernel, kernel, channels]
  const float* bias;          // [channels] or null
  CudaActivation activation;  // kNone, kRelu or kRelu6; NaN stays NaN.
  // [count, ceil(height / stride), ceil(width / stride), channels], written.
  T* y;
};

// Enqueues the CUDA kernel on `stream` and returns. Returns INVALID_ARGUMENT if
// args.kernel, args.stride or args.activation has a value that is not listed in
// DepthwiseConvolutionCudaArgs. Returns INTERNAL if CUDA refuses the launch.
// All pointers in `args` are device pointers. T is float, BFloat16 or Float16.
//
// The bits of an output pixel depend neither on input pixels that it does not
// read nor on the number of maps. The CUDA kernel is fastest if the number of
// channels is a multiple of 4 and pointers are aligned to 16 bytes.
template <typename T>
absl::Status DepthwiseConvolutionCuda(
    const DepthwiseConvolutionCudaArgs<T>& args, CudaStream stream);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_LINEAR_DEPTHWISE_CONVOLUTION_CUDA_H_
