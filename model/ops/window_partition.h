#ifndef SFMAMBA_MODEL_OPS_WINDOW_PARTITION_H_
#define SFMAMBA_MODEL_OPS_WINDOW_PARTITION_H_

#include "ATen/core/Tensor.h"
#include "model/ops/window_grid.h"

namespace sfmamba::ops {

// Partition into windows by libtorch's operators, on the CPU.

// Converts x [N, map_height, map_width, C] to windows [N * windows, height *
// width, C]. The windows of an image, and the tokens of a window, are in
// row-major order. Tokens beyond the map are zeros. The result is contiguous
// and shares x's memory if possible.
at::Tensor WindowPartition(const at::Tensor& x, const WindowGrid& grid);

// Returns the windows in fp32. Each has `margin` additional tokens at either
// end, which are not initialised.
at::Tensor WindowPartition(const at::Tensor& x, const WindowGrid& grid,
                           int margin);

// The inverse of WindowPartition. Tokens beyond the map are dropped.
at::Tensor WindowReverse(const at::Tensor& x, const WindowGrid& grid);

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_WINDOW_PARTITION_H_
