#ifndef SFMAMBA_MODEL_OPS_WINDOW_PARTITION_H_
#define SFMAMBA_MODEL_OPS_WINDOW_PARTITION_H_

#include "ATen/core/Tensor.h"
#include "model/ops/window_grid.h"

namespace sfmamba::ops {

// Functions that divide maps into windows with libtorch's operators, on the
// CPU.

// Converts x [N, map_height, map_width, C] to windows [N * windows, height *
// width, C]. The windows of an image, and the tokens of a window, are in
// row-major order. Tokens beyond the map are zeros. The result is contiguous
// and shares x's memory if possible.
at::Tensor WindowPartition(const at::Tensor& x, const WindowGrid& grid);

// Does the same, but returns fp32 windows with 2 * `margin` additional tokens
// each. `margin` tokens are at the start of the window and `margin` tokens are
// at its end. They are not initialised.
at::Tensor WindowPartition(const at::Tensor& x, const WindowGrid& grid,
                           int margin);

// The inverse of the first WindowPartition(). Drops tokens beyond the map.
at::Tensor WindowReverse(const at::Tensor& x, const WindowGrid& grid);

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_WINDOW_PARTITION_H_
