#ifndef SFMAMBA_KERNELS_PIXELS_PIXEL_CONVOLUTION_CUDA_H_
#define SFMAMBA_KERNELS_PIXELS_PIXEL_CONVOLUTION_CUDA_H_

#include <array>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/base/bfloat16.h"
#include "kernels/base/float16.h"
#include "kernels/cuda/cuda_activation.h"
#include "kernels/cuda/cuda_stream.h"
#include "kernels/pixels/cuda_image.h"

namespace sfmamba::kernels {

// A network's first layers, applied to the bytes of images of any sizes. Each
// image is normalised as in kernels/pixels/image_normalize.h and padded with
// zeros on the right and at the bottom to height x width. Then
//   y = activation(conv(image) + bias), with 3x3 taps, stride 2 and padding 1.
// The arithmetic is fp32, rounded to T once at the end.
template <typename T>
struct PixelConvolutionArgs {
  int count;
  const CudaImage* images;  // [count], host memory, read before the return
  int height, width;        // The padded size. No image may be larger.
  int channels;             // y's channels, a multiple of 8.
  // [27, channels]. Row (ky*3 + kx)*3 + colour holds the weights of tap (ky,
  // kx) for one of the three colours.
  const float* weight;
  const float* bias;  // [channels]
  std::array<float, 3> mean;
  std::array<float, 3> std;
  CudaActivation activation;  // kNone, kRelu or kRelu6.
  T* y;  // [count, ceil(height/2), ceil(width/2), channels], written
  // [count], in device memory. planar[n] is 0 if image n has the layout
  // [height, width, 3]. Otherwise the layout is [3, height, width]. If the
  // pointer is null, all images have the layout [height, width, 3].
  const uint8_t* planar = nullptr;
};

// Reads the images about once and writes y once.
//
// Enqueues the work on `stream` and does not wait for it. Returns
// INVALID_ARGUMENT if the number of channels or the activation is not
// supported, or if weight, bias or y is not 16-byte aligned. Returns INTERNAL
// if CUDA refuses a launch. All pointers except `images` are device pointers. T
// is float, BFloat16 or Float16. An image's output bits depend neither on the
// other images nor on its index in the batch. The kernel is fastest if
// `channels` is a multiple of 32 and the rows of the images begin at multiples
// of 4 bytes.
template <typename T>
absl::Status PixelConvolutionCuda(const PixelConvolutionArgs<T>& args,
                                  CudaStream stream);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_PIXELS_PIXEL_CONVOLUTION_CUDA_H_
