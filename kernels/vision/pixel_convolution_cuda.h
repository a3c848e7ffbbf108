#ifndef SFMAMBA_KERNELS_VISION_PIXEL_CONVOLUTION_CUDA_H_
#define SFMAMBA_KERNELS_VISION_PIXEL_CONVOLUTION_CUDA_H_

#include <array>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/base/bfloat16.h"
#include "kernels/base/float16.h"
#include "kernels/cuda/cuda_activation.h"
#include "kernels/cuda/cuda_stream.h"
#include "kernels/vision/cuda_image.h"

namespace sfmamba::kernels {

// A network's first layers, from the bytes of images of any sizes: each image
// is normalised like kernels/vision/image_normalize.h and lies in the upper
// left corner of a place of zeros, and then
//   y = activation(convolution of the place, 3x3, stride 2, padding 1, + bias)
// The arithmetic is fp32, rounded to T once, at the end.
template <typename T>
struct PixelConvolutionArgs {
  int count;
  const CudaImage* images;  // [count], host memory, read before the return
  int height, width;        // Of a place; no image is larger.
  int channels;             // Of y, a multiple of 8.
  // Row (ky*3 + kx)*3 + colour holds what that tap multiplies.
  const float* weight;  // [27, channels]
  const float* bias;    // [channels]
  std::array<float, 3> mean;
  std::array<float, 3> std;
  CudaActivation activation;  // kNone, kRelu or kRelu6.
  T* y;  // [count, ceil(height/2), ceil(width/2), channels], written
};

// Reads 3 bytes a pixel of the images, about once, and writes y once.
//
// Enqueues on `stream` and returns; INVALID_ARGUMENT for other channels or
// activations or where weight, bias or y is not 16-byte aligned, INTERNAL if
// the launch is refused. All pointers but `images` are the device's. T is
// float, BFloat16 or Float16. An image's bits in y depend neither on the rest
// of the batch nor on its place there. Fastest where channels are a multiple of
// 32 and images' rows begin at multiples of 4 bytes.
template <typename T>
absl::Status PixelConvolutionCuda(const PixelConvolutionArgs<T>& args,
                                  CudaStream stream);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_VISION_PIXEL_CONVOLUTION_CUDA_H_
