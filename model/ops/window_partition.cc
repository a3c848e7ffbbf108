#include "model/ops/window_partition.h"

#include "ATen/ops/constant_pad_nd.h"
#include "ATen/ops/empty.h"
#include "model/ops/device_ops.h"

namespace sfmamba::ops {

at::Tensor WindowPartition(const at::Tensor& x, const WindowGrid& grid) {
  if (ops::OnDevice(x)) {
    return WindowPartitionOnDevice(x, grid, /*margin=*/0, x.scalar_type());
  }
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

at::Tensor WindowPartitionOnDevice(const at::Tensor& x, const WindowGrid& grid,
                                   int margin, at::ScalarType type) {
  const at::Tensor windows =
      at::empty({x.size(0) * grid.windows(),
                 grid.height * grid.width + 2 * margin, x.size(3)},
                x.options().dtype(type));
  ops::DeviceOpsOf(x)->WindowPartition(x, grid, margin, windows);
  return windows;
}

at::Tensor WindowReverse(const at::Tensor& x, const WindowGrid& grid) {
  if (ops::OnDevice(x)) return WindowReverseOnDevice(x, grid, x.scalar_type());
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

at::Tensor WindowReverseOnDevice(const at::Tensor& x, const WindowGrid& grid,
                                 at::ScalarType type) {
  const at::Tensor map = at::empty(
      {x.size(0) / grid.windows(), grid.map_height, grid.map_width, x.size(2)},
      x.options().dtype(type));
  ops::DeviceOpsOf(x)->WindowReverse(x, grid, map);
  return map;
}

}  // namespace sfmamba::ops
