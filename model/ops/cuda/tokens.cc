#include <algorithm>

#include "ATen/ops/empty.h"
#include "model/ops/cuda/cuda_implementation.h"

namespace sfmamba::ops {
namespace {

// Attention is computed for at most this many different window heights, because
// cuDNN builds a plan for each new shape. A plan takes tens of milliseconds and
// stays in memory.
constexpr int64_t kHeights = 8;

class CudaWindows : public WindowOp {
 public:
  CudaWindows(const DeviceOps& device, at::ScalarType stream_type,
              at::ScalarType map_type)
      : device_(device), stream_type_(stream_type), map_type_(map_type) {}

  at::Tensor Partition(const at::Tensor& x, const WindowGrid& grid,
                       WindowEnds ends) const override {
    const int more = ends == WindowEnds::kNone ? 0 : 2;
    const at::Tensor windows =
        at::empty({x.size(0) * grid.windows(), grid.height * grid.width + more,
                   x.size(3)},
                  x.options().dtype(stream_type_));
    // x is fp32 if it is the result of a LayerNorm.
    device_.WindowPartition(x.to(map_type_), grid, ends, windows);
    return windows;
  }

  int64_t RowsNeeded(const WindowGrid& grid) const override {
    const int64_t step = (grid.height + kHeights - 1) / kHeights;
    return std::min(grid.height, (grid.map_height + step - 1) / step * step);
  }

  at::Tensor Reverse(const at::Tensor& windows,
                     const WindowGrid& grid) const override {
    return ReverseTo(windows, grid, windows.scalar_type());
  }

  at::Tensor ReverseToMap(const at::Tensor& windows,
                          const WindowGrid& grid) const override {
    if (windows.scalar_type() == map_type_ && windows.is_contiguous() &&
        grid.height == grid.map_height && grid.width == grid.map_width) {
      // The map itself is the only window, and its tokens have the same order.
      return windows.view({-1, grid.height, grid.width, windows.size(2)})
          .permute({0, 3, 1, 2});
    }
    return ReverseTo(windows, grid, map_type_).permute({0, 3, 1, 2});
  }

 private:
  at::Tensor ReverseTo(const at::Tensor& windows, const WindowGrid& grid,
                       at::ScalarType type) const {
    const at::Tensor map =
        at::empty({windows.size(0) / grid.windows(), grid.map_height,
                   grid.map_width, windows.size(2)},
                  windows.options().dtype(type));
    device_.WindowReverse(windows, grid, map);
    return map;
  }

  const DeviceOps& device_;
  at::ScalarType stream_type_, map_type_;
};

}  // namespace

std::unique_ptr<WindowOp> CudaImplementation::MakeWindows(
    const WindowParameters& parameters) const {
  const at::ScalarType type = TypeOf(/*is_output=*/false);
  // With layer scales, small values are added to a large sum. fp16 may be too
  // inexact for this.
  const bool wide = parameters.layer_scale && type == at::kHalf;
  return std::make_unique<CudaWindows>(device_, wide ? at::kFloat : type, type);
}

void CudaImplementation::FillEndsWithMean(at::Tensor& x) const {
  device_.FillEndsWithMean(x);
}

at::Tensor CudaImplementation::Attention(const at::Tensor& q,
                                         const at::Tensor& k,
                                         const at::Tensor& v) const {
  return device_.Attention(q, k, v);
}

}  // namespace sfmamba::ops
