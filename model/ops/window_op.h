#ifndef SFMAMBA_MODEL_OPS_WINDOW_OP_H_
#define SFMAMBA_MODEL_OPS_WINDOW_OP_H_

#include "ATen/core/Tensor.h"
#include "model/ops/window_grid.h"

namespace sfmamba::ops {

struct WindowParameters {
  // Whether the layers have layer scales, factors by which their results are
  // multiplied. If so, the values that are added to the residual stream are
  // small, and the stream may need a more exact type.
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
  // beyond the map are zeros. Unless `ends` is kNone, each window gets two
  // additional tokens, one at its start and one at its end. If `ends` is kNone,
  // the result shares x's memory if possible.
  virtual at::Tensor Partition(const at::Tensor& x, const WindowGrid& grid,
                               WindowEnds ends) const = 0;
  // The inverse of Partition() with kNone. Returns [N, map_height, map_width,
  // C]. Drops tokens beyond the map.
  virtual at::Tensor Reverse(const at::Tensor& windows,
                             const WindowGrid& grid) const = 0;
  // Returns how many rows of tokens the last attention of a stage must compute.
  // `grid` must have only one window. The result is at least the map's height
  // and at most the window's height. An implementation may return more rows
  // than the map has, because it may be faster if only a few different numbers
  // occur.
  virtual int64_t RowsNeeded(const WindowGrid& grid) const {
    return grid.map_height;
  }
  // The inverse of Partition() with kNone. Returns a map [N, C, map_height,
  // map_width] with the type and the order in memory that convolutions read.
  // The map shares the windows' memory if possible.
  virtual at::Tensor ReverseToMap(const at::Tensor& windows,
                                  const WindowGrid& grid) const = 0;
};

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_WINDOW_OP_H_
