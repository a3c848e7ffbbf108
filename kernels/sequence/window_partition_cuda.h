#ifndef SFMAMBA_KERNELS_SEQUENCE_WINDOW_PARTITION_CUDA_H_
#define SFMAMBA_KERNELS_SEQUENCE_WINDOW_PARTITION_CUDA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/cuda_stream.h"

namespace sfmamba::kernels {

// Feature maps [images, map_height, map_width, channels] and their partition
// into windows of tokens. If the window size does not divide the map size, the
// last windows extend beyond the map on the right and at the bottom. The
// windows of each image, and the tokens of each window, are in row-major order.
// A window consists of `margin` auxiliary tokens, its height * width tokens,
// and `margin` more auxiliary tokens.
template <typename T, typename X>
struct WindowArgs {
  int images;
  int map_height, map_width;
  int height, width;  // The size of a window, in tokens.
  int channels;
  // Channel c of pixel (i, j) of image n is at n*image_stride + i*row_stride +
  // j*pixel_stride + c.
  T* map;
  int64_t image_stride, row_stride, pixel_stride;
  // [images * windows * (height * width + 2 * margin), channels], rows
  // token_stride apart.
  X* tokens;
  int64_t token_stride;
  int margin = 0;  // Auxiliary tokens at each end of a window.
  // If true, WindowPartitionCuda() sets both auxiliary tokens of a window to
  // the mean of the window's height * width tokens. The tokens beyond the map
  // are included as zeros. The mean is bit-identical to the result of
  // TokenMeanScalar(). `margin` must be 1. If false, auxiliary tokens are not
  // written.
  bool mean = false;
};

// Copies `map` to `tokens`, with zeros for tokens beyond the map.
//
// WindowPartitionCuda() and WindowReverseCuda() enqueue the work on `stream`
// and do not wait for it. They return INTERNAL if CUDA refuses the launch. All
// pointers in `args` are device pointers. T is float, BFloat16 or Float16. X is
// T or float. The kernels are fastest if pointers and strides are multiples of
// 16 bytes.
template <typename T, typename X>
absl::Status WindowPartitionCuda(const WindowArgs<T, X>& args,
                                 CudaStream stream);

// Copies `tokens`, rounded to T, to `map`. Skips auxiliary tokens and tokens
// beyond the map.
template <typename T, typename X>
absl::Status WindowReverseCuda(const WindowArgs<T, X>& args, CudaStream stream);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SEQUENCE_WINDOW_PARTITION_CUDA_H_
