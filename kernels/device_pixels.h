// Normalised pixels of images in device code: for .cu files.
#ifndef SFMAMBA_KERNELS_DEVICE_PIXELS_H_
#define SFMAMBA_KERNELS_DEVICE_PIXELS_H_

#include <cstdint>

#include "kernels/cuda_image.h"
#include "simt/simt.h"

namespace sfmamba {

// Images of a launch: their descriptions are kernel parameters.
constexpr int kImages = 64;
constexpr int kPixels = 4;  // That a thread reads at a time: 12 bytes.

// [256 c + v]: what value v of channel c becomes.
using PixelTable = simt::Shared<float, 3 * 256>;

// Makes entries `thread`, `thread` + `threads`, ... of each channel:
// (v / 255 - mean[c]) / std[c], in three rounded operations.
__device__ __forceinline__ void FillPixelTable(const float (&mean)[3],
                                               const float (&std)[3],
                                               int thread, int threads,
                                               PixelTable* table) {
  for (int i = thread; i < 256; i += threads) {
    const float scaled = static_cast<float>(i) / 255.0f;
#pragma unroll
    for (int c = 0; c < 3; ++c) {
      (*table)[256 * c + i] = (scaled - mean[c]) / std[c];
    }
  }
}

// The bytes of pixels j to j+3 of a row, those up to the image's width.
__device__ __forceinline__ void LoadPixels(const CudaImage& image, int i, int j,
                                           uint8_t (&bytes)[3 * kPixels]) {
  const uint8_t* from = image.rgb + (int64_t{i} * image.width + j) * 3;
  if (j + kPixels <= image.width &&
      reinterpret_cast<uintptr_t>(from) % kPixels == 0) {
#pragma unroll
    for (int w = 0; w < 3; ++w) {
      const simt::Vector<uint8_t, 4> word = simt::Load<4>(from + 4 * w);
#pragma unroll
      for (int b = 0; b < 4; ++b) bytes[4 * w + b] = word[b];
    }
    return;
  }
#pragma unroll
  for (int b = 0; b < 3 * kPixels; ++b) {
    if (j + b / 3 < image.width) bytes[b] = from[b];
  }
}

// values[3 p + c]: pixel j+p of row i, normalised; 0 outside of the image.
__device__ __forceinline__ void ReadPixels(const CudaImage& image,
                                           PixelTable& table, int i, int j,
                                           float (&values)[3 * kPixels]) {
  uint8_t bytes[3 * kPixels];
  if (i < image.height) LoadPixels(image, i, j, bytes);
#pragma unroll
  for (int b = 0; b < 3 * kPixels; ++b) {
    const bool inside = i < image.height && j + b / 3 < image.width;
    values[b] = inside ? table[256 * (b % 3) + bytes[b]] : 0.0f;
  }
}

}  // namespace sfmamba

#endif  // SFMAMBA_KERNELS_DEVICE_PIXELS_H_
