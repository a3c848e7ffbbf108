#include <cmath>

#include "ATen/TensorOperators.h"
#include "ATen/ops/matmul.h"
#include "ATen/ops/softmax.h"
#include "model/ops/reference/reference_implementation.h"
#include "model/ops/window_partition.h"

namespace sfmamba::ops {
namespace {

// Sets the first and the last token of each sequence to the mean of the others.
void FillEnds(const at::Tensor& x) {
  const int64_t last = x.size(1) - 1;
  const at::Tensor mean = x.narrow(1, 1, last - 1).contiguous().mean(1);
  x.select(1, 0).copy_(mean);
  x.select(1, last).copy_(mean);
}

class ReferenceWindows : public WindowOp {
 public:
  at::Tensor Partition(const at::Tensor& x, const WindowGrid& grid,
                       WindowEnds ends) const override {
    at::Tensor windows =
        WindowPartition(x, grid, /*margin=*/ends == WindowEnds::kNone ? 0 : 1);
    if (ends == WindowEnds::kMean) FillEnds(windows);
    return windows;
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
  FillEnds(x);
}

at::Tensor ReferenceImplementation::Attention(const at::Tensor& q,
                                              const at::Tensor& k,
                                              const at::Tensor& v) const {
  const double scale = 1 / std::sqrt(static_cast<double>(q.size(3)));
  const at::Tensor products = at::matmul(q, k.transpose(2, 3));
  return at::matmul(at::softmax(products * scale, -1), v);
}

}  // namespace sfmamba::ops
