#ifndef SFMAMBA_MODEL_WINDOW_H_
#define SFMAMBA_MODEL_WINDOW_H_

#include <cstdint>

#include "ATen/core/Tensor.h"

namespace sfmamba {

// A map cut into windows of one size, in tokens. Where the windows do not fill
// the map's sides they hang over on the right and at the bottom.
struct Grid {
  int64_t map_height = 0, map_width = 0;
  int64_t height = 0, width = 0;  // Of a window.

  int64_t rows() const { return (map_height + height - 1) / height; }
  int64_t columns() const { return (map_width + width - 1) / width; }
  int64_t windows() const { return rows() * columns(); }
};

// [N, map_height, map_width, C] to [N * windows, height * width, C]: image by
// image, windows and the tokens in them row by row, zeros where they hang over.
// Contiguous; x's memory where that is possible.
at::Tensor CutWindows(const at::Tensor& x, const Grid& grid);

// The inverse; what hangs over is dropped.
at::Tensor JoinWindows(const at::Tensor& x, const Grid& grid);

}  // namespace sfmamba

#endif  // SFMAMBA_MODEL_WINDOW_H_
