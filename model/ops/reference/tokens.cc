#include <cmath>

#include "ATen/TensorOperators.h"
#include "ATen/ops/matmul.h"
#include "ATen/ops/softmax.h"
#include "model/ops/reference/reference_implementation.h"
#include "model/ops/window_partition.h"

namespace sfmamba::ops {
namespace {

class ReferenceWindows : public WindowOp {
 public:
  at::Tensor Partition(const at::Tensor& x, const WindowGrid& grid,
                       int margin) const override {
    return WindowPartition(x, grid, margin);
  }
  at::Tensor Reverse(const at::Tensor& windows,
                     const WindowGrid& grid) const override {
    return WindowReverse(windows, grid);
  }
  at::Tensor ReverseToMap(const at::Tensor& windows,
                          const WindowGrid& grid) const override {
    return WindowReverse(windows, grid).permute({0, 3, 1, 2}).contiguous();
  }
};

}  // namespace

std::unique_ptr<WindowOp> ReferenceImplementation::MakeWindows(
    const WindowParameters&) const {
  return std::make_unique<ReferenceWindows>();
}

void ReferenceImplementation::FillEndsWithMean(at::Tensor& x) const {
  const int64_t last = x.size(1) - 1;
  const at::Tensor mean = x.narrow(1, 1, last - 1).contiguous().mean(1);
  x.select(1, 0).copy_(mean);
  x.select(1, last).copy_(mean);
}

at::Tensor ReferenceImplementation::Attention(const at::Tensor& q,
                                              const at::Tensor& k,
                                              const at::Tensor& v) const {
  const double scale = 1 / std::sqrt(static_cast<double>(q.size(3)));
  const at::Tensor products = at::matmul(q, k.transpose(2, 3));
  return at::matmul(at::softmax(products * scale, -1), v);
}

}  // namespace sfmamba::ops
