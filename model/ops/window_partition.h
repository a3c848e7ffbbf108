#ifndef SFMAMBA_MODEL_OPS_WINDOW_PARTITION_H_
#define SFMAMBA_MODEL_OPS_WINDOW_PARTITION_H_

#include "ATen/core/Tensor.h"
#include "model/ops/window_grid.h"

namespace sfmamba::ops {

// [N, map_height, map_width, C] to [N * windows, height * width, C]: image by
// image, windows and the tokens in them row by row, zeros where they hang over.
// Contiguous; x's memory where that is possible.
at::Tensor WindowPartition(const at::Tensor& x, const WindowGrid& grid);

// The same on a device, as `type`, with `margin` tokens at each end of a window
// that are yet to be filled. x's last axis is dense.
at::Tensor WindowPartitionOnDevice(const at::Tensor& x, const WindowGrid& grid,
                                   int margin, at::ScalarType type);

// The inverse of WindowPartition; what hangs over is dropped.
at::Tensor WindowReverse(const at::Tensor& x, const WindowGrid& grid);
// The same on a device, as `type`.
at::Tensor WindowReverseOnDevice(const at::Tensor& x, const WindowGrid& grid,
                                 at::ScalarType type);

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_WINDOW_PARTITION_H_
