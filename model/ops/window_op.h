#ifndef SFMAMBA_MODEL_OPS_WINDOW_OP_H_
#define SFMAMBA_MODEL_OPS_WINDOW_OP_H_

#include "ATen/core/Tensor.h"
#include "model/ops/window_grid.h"

namespace sfmamba::ops {

struct WindowParameters {
  // Whether layer scales make the values that are added to the residual stream
  // small.
  bool layer_scale = false;
};

// Converts a token stage's maps to windows, the residual stream, and back. The
// windows of an image, and the tokens of a window, are in row-major order.
// Immutable, so thread-safe.
class WindowOp {
 public:
  virtual ~WindowOp() = default;

  // Converts x [N, map_height, map_width, C] to windows [N * windows, height *
  // width, C] of the residual stream's type, contiguous, with one token more at
  // either end unless `ends` is kNone. Tokens beyond the map are zeros. Without
  // ends the result shares x's memory if possible.
  virtual at::Tensor Partition(const at::Tensor& x, const WindowGrid& grid,
                               WindowEnds ends) const = 0;
  // The inverse of Partition() without ends: [N, map_height, map_width, C].
  // Tokens beyond the map are dropped.
  virtual at::Tensor Reverse(const at::Tensor& windows,
                             const WindowGrid& grid) const = 0;
  // Returns how many rows of the only window of `grid` the last attention of a
  // stage is computed for: those that hold the map, or more of them where few
  // different numbers are faster.
  virtual int64_t RowsNeeded(const WindowGrid& grid) const {
    return grid.map_height;
  }
  // The inverse as a map [N, C, map_height, map_width], in the type and the
  // order in memory that convolutions read. Shares memory if possible.
  virtual at::Tensor ReverseToMap(const at::Tensor& windows,
                                  const WindowGrid& grid) const = 0;
};

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_WINDOW_OP_H_
