#include "model/ops/window_partition.h"

#include "ATen/ops/constant_pad_nd.h"
#include "ATen/ops/empty.h"

namespace sfmamba::ops {

at::Tensor WindowPartition(const at::Tensor& x, const WindowGrid& grid) {
  const int64_t below = grid.rows() * grid.height - grid.map_height;
  const int64_t right = grid.columns() * grid.width - grid.map_width;
  const at::Tensor padded =
      below + right > 0
          ? at::constant_pad_nd(x, {0, 0, 0, right, 0, below}).contiguous()
          : x.contiguous();
  return padded
      .view({x.size(0), grid.rows(), grid.height, grid.columns(), grid.width,
             x.size(3)})
      .transpose(2, 3)
      .reshape({-1, grid.height * grid.width, x.size(3)});
}

at::Tensor WindowPartition(const at::Tensor& x, const WindowGrid& grid,
                           int margin) {
  const at::Tensor windows = WindowPartition(x, grid).to(at::kFloat);
  if (margin == 0) return windows;
  const int64_t length = windows.size(1);
  const at::Tensor wider =
      at::empty({windows.size(0), length + 2 * margin, windows.size(2)},
                windows.options());
  wider.narrow(1, margin, length).copy_(windows);
  return wider;
}

at::Tensor WindowReverse(const at::Tensor& x, const WindowGrid& grid) {
  const int64_t images = x.size(0) / grid.windows();
  return x
      .view({images, grid.rows(), grid.columns(), grid.height, grid.width,
             x.size(2)})
      .transpose(2, 3)
      .reshape({images, grid.rows() * grid.height, grid.columns() * grid.width,
                x.size(2)})
      .narrow(1, 0, grid.map_height)
      .narrow(2, 0, grid.map_width)
      .contiguous();
}

}  // namespace sfmamba::ops
