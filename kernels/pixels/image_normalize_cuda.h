#ifndef SFMAMBA_KERNELS_PIXELS_IMAGE_NORMALIZE_CUDA_H_
#define SFMAMBA_KERNELS_PIXELS_IMAGE_NORMALIZE_CUDA_H_

#include <array>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/cuda_stream.h"
#include "kernels/pixels/cuda_image.h"

namespace sfmamba::kernels {

// Normalises a batch of images of any sizes as in
// kernels/pixels/image_normalize.h. Each image is written to the upper left
// corner of its element of y; the rest of the element is set to 0.
template <typename T>
struct ImageNormalizeCudaArgs {
  int count;
  const CudaImage* images;  // [count], host memory, read before the return
  int height, width;        // The size of y's elements; no image is larger.
  // Written: channel c of pixel (i, j) of image n at n*image_stride +
  // i*row_stride + j*pixel_stride + c*channel_stride.
  T* y;
  int64_t image_stride;
  int64_t row_stride;
  int64_t pixel_stride;    // 1 for [N, 3, H, W], 3 for [N, H, W, 3]
  int64_t channel_stride;  // H*W for [N, 3, H, W], 1 for [N, H, W, 3]
  std::array<float, 3> mean;
  std::array<float, 3> std;
  // [count], device memory: not 0 for images [3, height, width]. Null: none is.
  const uint8_t* planar = nullptr;
};

// Bit-identical to ImageNormalizeCpu.
//
// Enqueues on `stream` and returns. INTERNAL if the launch is refused. y and
// the images' pixels are device memory. T is float, BFloat16 or Float16.
// Fastest where channels or pixels are contiguous and rows are a multiple of 4
// pixels.
template <typename T>
absl::Status ImageNormalizeCuda(const ImageNormalizeCudaArgs<T>& args,
                                CudaStream stream);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_PIXELS_IMAGE_NORMALIZE_CUDA_H_
