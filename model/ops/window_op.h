#ifndef SFMAMBA_MODEL_OPS_WINDOW_OP_H_
#define SFMAMBA_MODEL_OPS_WINDOW_OP_H_

#include "ATen/core/Tensor.h"
#include "model/ops/window_grid.h"

namespace sfmamba::ops {

struct WindowParameters {
  // Whether layer scales are applied, so that the values that are added to the
  // residual stream are small.
  bool layer_scale = false;
};

// Converts a token stage's maps to windows, which form the residual stream, and
// back. The windows of an image, and the tokens of a window, are in row-major
// order. Immutable, so thread-safe.
class WindowOp {
 public:
  virtual ~WindowOp() = default;

  // Converts x [N, map_height, map_width, C] to windows [N * windows, height *
  // width, C]. They are contiguous and have the residual stream's type. Tokens
  // beyond the map are zeros. Unless `ends` is kNone, each window gets one more
  // token at either end. If `ends` is kNone, the result shares x's memory if
  // possible.
  virtual at::Tensor Partition(const at::Tensor& x, const WindowGrid& grid,
                               WindowEnds ends) const = 0;
  // The inverse of Partition() with kNone. Returns [N, map_height, map_width,
  // C]. Tokens beyond the map are dropped.
  virtual at::Tensor Reverse(const at::Tensor& windows,
                             const WindowGrid& grid) const = 0;
  // Returns the number of rows that the last attention of a stage must compute.
  // `grid` has only one window. This is at least the number of rows of the map.
  // It may be rounded up, because an implementation may be faster if it sees
  // only a few different numbers of rows.
  virtual int64_t RowsNeeded(const WindowGrid& grid) const {
    return grid.map_height;
  }
  // The inverse of Partition() with kNone, as a map [N, C, map_height,
  // map_width]. It has the type and the order in memory that convolutions read.
  // It shares the windows' memory if possible.
  virtual at::Tensor ReverseToMap(const at::Tensor& windows,
                                  const WindowGrid& grid) const = 0;
};

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_WINDOW_OP_H_
