// Device code that reads and normalises pixels of images. Only .cu files
// include this header.
#ifndef SFMAMBA_KERNELS_PIXELS_DEVICE_PIXELS_H_
#define SFMAMBA_KERNELS_PIXELS_DEVICE_PIXELS_H_

#include <cstdint>

#include "kernels/pixels/cuda_image.h"
#include "simt/simt.h"

namespace sfmamba::kernels {

// The maximum number of images in a launch. The CudaImage objects are passed as
// kernel parameters, and CUDA limits the total size of kernel parameters.
constexpr int kImages = 64;
constexpr int kPixels = 4;  // A thread reads four pixels (12 bytes) at a time.

// Entry [256 c + v] is the normalised value of byte v in channel c.
using PixelTable = simt::Shared<float, 3 * 256>;

// Sets the entries v = `thread`, `thread` + `threads`, ... of each channel c to
// (v / 255 - mean[c]) / std[c]. Each of the three operations is rounded to
// fp32.
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

// Returns four bytes as a word, with the first byte in the lowest bits. Reads
// only the first `count` bytes. The other bytes of the word are 0.
__device__ __forceinline__ uint32_t LoadBytes(const uint8_t* from, int count) {
  if (count >= 4 && reinterpret_cast<uintptr_t>(from) % 4 == 0) {
    return *reinterpret_cast<const uint32_t*>(from);
  }
  uint32_t word = 0;
#pragma unroll
  for (int b = 0; b < 4; ++b) {
    if (b < count) word |= uint32_t{from[b]} << (8 * b);
  }
  return word;
}

// Does the work of LoadPixels() for an image of three planes, one per channel.
// The planes begin `plane` bytes apart. The caller must set `words` to 0 before
// the call.
__device__ __forceinline__ void LoadPlanes(const uint8_t* from, int64_t plane,
                                           int count, uint32_t (&words)[3]) {
  uint32_t planes[3];
#pragma unroll
  for (int c = 0; c < 3; ++c) planes[c] = LoadBytes(from + c * plane, count);
#pragma unroll
  for (int b = 0; b < 3 * kPixels; ++b) {
    words[b / 4] |= (planes[b % 3] >> (b / 3 * 8) & 255) << (b % 4 * 8);
  }
}

// Loads the 12 bytes of four pixels into `words`, with the first byte in the
// lowest bits. Reads only the first `count` pixels. The caller must set `words`
// to 0 before the call.
__device__ __forceinline__ void LoadPixels(const uint8_t* from, int count,
                                           uint32_t (&words)[3]) {
  if (count >= kPixels && reinterpret_cast<uintptr_t>(from) % 4 == 0) {
#pragma unroll
    for (int w = 0; w < 3; ++w) {
      words[w] = reinterpret_cast<const uint32_t*>(from)[w];
    }
    return;
  }
#pragma unroll
  for (int b = 0; b < 3 * kPixels; ++b) {
    if (b / 3 < count) words[b / 4] |= uint32_t{from[b]} << (b % 4 * 8);
  }
}

// Sets values[3 p + c] to the normalised value of channel c of pixel j + p in
// row i. Outside of the image, sets it to 0. If `planar` is true, the image has
// the layout [3, height, width]. j must be a multiple of 4. i and j may be
// negative.
__device__ __forceinline__ void ReadPixels(const CudaImage& image, bool planar,
                                           PixelTable& table, int i, int j,
                                           float (&values)[3 * kPixels]) {
  const bool inside = 0 <= i && i < image.height && 0 <= j;
  const int count = inside ? image.width - j : 0;
  uint32_t words[3] = {};
  const int64_t pixel = int64_t{i} * image.width + j;
  if (count > 0 && planar) {
    LoadPlanes(image.rgb + pixel, int64_t{image.height} * image.width, count,
               words);
  } else if (count > 0) {
    LoadPixels(image.rgb + pixel * 3, count, words);
  }
#pragma unroll
  for (int b = 0; b < 3 * kPixels; ++b) {
    // Reads the table for pixels outside of the image as well, because a
    // conditional load takes longer than a select.
    const uint32_t byte = words[b / 4] >> (b % 4 * 8) & 255;
    const float value = table[256 * (b % 3) + byte];
    values[b] = b / 3 < count ? value : 0.0f;
  }
}

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_PIXELS_DEVICE_PIXELS_H_
