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
// corner of its element of y. The rest of the element is set to 0.
template <typename T>
struct ImageNormalizeCudaArgs {
  int count;
  const CudaImage* images;  // [count], host memory, read before the return
  int height, width;        // Size of y's elements. No image may be larger.
  // The output. Channel c of pixel (i, j) of image n is written at index
  // n*image_stride + i*row_stride + j*pixel_stride + c*channel_stride.
  T* y;
  int64_t image_stride;
  int64_t row_stride;
  int64_t pixel_stride;    // 1 for [N, 3, H, W], 3 for [N, H, W, 3]
  int64_t channel_stride;  // H*W for [N, 3, H, W], 1 for [N, H, W, 3]
  std::array<float, 3> mean;
  std::array<float, 3> std;
  // [count], in device memory. planar[n] is 0 if image n has the layout
  // [height, width, 3]. Otherwise the layout is [3, height, width]. If the
  // pointer is null, all images have the layout [height, width, 3].
  const uint8_t* planar = nullptr;
};

// Writes the same values as ImageNormalizeCpu(), bit for bit.
//
// Enqueues the work on `stream` and does not wait for it. Returns INTERNAL if
// CUDA refuses a launch. y and the images' pixels must be in device memory. T
// is float, BFloat16 or Float16. The kernel is fastest if the channels or the
// pixels of y are contiguous and its rows are a multiple of 4 pixels.
template <typename T>
absl::Status ImageNormalizeCuda(const ImageNormalizeCudaArgs<T>& args,
                                CudaStream stream);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_PIXELS_IMAGE_NORMALIZE_CUDA_H_
