#ifndef SFMAMBA_KERNELS_SEQUENCE_WINDOW_PARTITION_CUDA_H_
#define SFMAMBA_KERNELS_SEQUENCE_WINDOW_PARTITION_CUDA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/cuda_stream.h"

namespace sfmamba::kernels {

// Maps [images, map_height, map_width, channels] and the windows that they are
// cut into, as tokens. Where windows do not fill a map's sides they hang over
// on the right and at the bottom. Image by image, windows and the tokens in
// them lie row by row; each window is `margin` auxiliary tokens, its own height
// * width, and `margin` more.
template <typename T, typename X>
struct WindowArgs {
  int images;
  int map_height, map_width;
  int height, width;  // Of a window, in tokens.
  int channels;
  // Pixel (i, j), channel c of image n at n*image_stride + i*row_stride +
  // j*pixel_stride + c.
  T* map;
  int64_t image_stride, row_stride, pixel_stride;
  X* tokens;  // [images * windows * (height * width + 2 * margin), channels],
              // rows token_stride apart
  int64_t token_stride;
  int margin = 0;  // Tokens at each end of a window that are left alone.
};

// Map to tokens, zeros where windows hang over. Reads `map`, writes `tokens`.
//
// Both enqueue on `stream` and return; INTERNAL if the launch is refused. All
// pointers in `args` are the device's. T, X are float, BFloat16 or Float16,
// both the same or X float. Fastest where rows and pointers are multiples of 16
// bytes.
template <typename T, typename X>
absl::Status WindowPartitionCuda(const WindowArgs<T, X>& args,
                                 CudaStream stream);

// Tokens to map, rounded to T; what hangs over is dropped. Reads `tokens`,
// writes `map`.
template <typename T, typename X>
absl::Status WindowReverseCuda(const WindowArgs<T, X>& args, CudaStream stream);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SEQUENCE_WINDOW_PARTITION_CUDA_H_
