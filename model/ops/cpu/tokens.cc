#include "kernels/simd/cpu_features.h"
#include "model/ops/cpu/cpu_implementation.h"
#include "model/ops/cpu/ops.h"
#include "model/ops/window_partition.h"

namespace sfmamba::ops {
namespace {

class CpuWindows : public WindowOp {
 public:
  at::Tensor Partition(const at::Tensor& x, const WindowGrid& grid,
                       WindowEnds ends) const override {
    at::Tensor windows =
        WindowPartition(x, grid, /*margin=*/ends == WindowEnds::kNone ? 0 : 1);
    if (ends == WindowEnds::kMean) ops::FillEndsWithMean(windows);
    return windows;
  }
  at::Tensor Reverse(const at::Tensor& windows,
                     const WindowGrid& grid) const override {
    return WindowReverse(windows, grid);
  }
  at::Tensor ReverseToMap(const at::Tensor& windows,
                          const WindowGrid& grid) const override {
    return WindowReverse(windows, grid).permute({0, 3, 1, 2});
  }
};

}  // namespace

std::unique_ptr<WindowOp> CpuImplementation::MakeWindows(
    const WindowParameters&) const {
  return std::make_unique<CpuWindows>();
}

void CpuImplementation::FillEndsWithMean(at::Tensor& x) const {
  ops::FillEndsWithMean(x);
}

at::Tensor CpuImplementation::Attention(const at::Tensor& q,
                                        const at::Tensor& k,
                                        const at::Tensor& v) const {
  if (kernels::ActiveCpuIsa() == kernels::CpuIsa::kScalar) {
    return AttentionByLibtorch(q, k, v);
  }
  return ops::Attention(q.to(attention_), k.to(attention_), v.to(attention_));
}

}  // namespace sfmamba::ops
