#ifndef SFMAMBA_KERNELS_PIXELS_IMAGE_NORMALIZE_H_
#define SFMAMBA_KERNELS_PIXELS_IMAGE_NORMALIZE_H_

#include <array>
#include <cstdint>

#include "kernels/base/bfloat16.h"

namespace sfmamba::kernels {

// Converts a uint8 RGB image to the model's input:
//   y = (v / 255 - mean[c]) / std[c]
// Each of the three operations is rounded to fp32, in this order. The result is
// then rounded to T. On every processor, y is bit-identical to the result of
// PyTorch's preprocessing.
template <typename T>
struct ImageNormalizeArgs {
  int64_t height, width;
  const uint8_t* rgb;  // Rows are contiguous.
  // The output. Channel c of pixel (i, j) is written at index i*row_stride +
  // j*pixel_stride + c*channel_stride.
  T* y;
  int64_t row_stride;
  int64_t pixel_stride;    // 1 for [3, H, W], 3 for [H, W, 3]
  int64_t channel_stride;  // H*W for [3, H, W], 1 for [H, W, 3]
  std::array<float, 3> mean;
  std::array<float, 3> std;
  // The strides of `rgb`. They are 3 and 1 if the layout of `rgb` is [H, W, 3],
  // or 1 and H*W if it is [3, H, W].
  int64_t rgb_pixel_stride = 3, rgb_channel_stride = 1;
};

// T is float or BFloat16. Runs on the calling thread.
template <typename T>
void ImageNormalizeCpu(const ImageNormalizeArgs<T>& args);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_PIXELS_IMAGE_NORMALIZE_H_
