#include "model/ops/detection_checks.h"

#include "kernels/detection/roi_align.h"

namespace sfmamba::ops {

void CheckRoiMaps(const std::vector<at::Tensor>& maps,
                  const std::vector<int>& strides) {
  TORCH_CHECK(!maps.empty() &&
                  maps.size() <= kernels::RoiAlignArgs::kMaxLevels &&
                  maps.size() == strides.size(),
              "expected 1 to ", kernels::RoiAlignArgs::kMaxLevels,
              " maps and a stride for each, got ", maps.size(), " and ",
              strides.size());
  const int64_t channels = maps[0].size(0);
  for (size_t i = 0; i < maps.size(); ++i) {
    TORCH_CHECK(maps[i].size(0) == channels &&
                    maps[i].permute({1, 2, 0}).is_contiguous(),
                "map ", i, ": expected ", channels,
                " channels, the last axis in memory, got sizes ",
                maps[i].sizes(), ", strides ", maps[i].strides());
  }
}

void CheckNmsInputs(const at::Tensor& boxes, const at::Tensor& scores,
                    const at::Tensor& groups) {
  const int64_t count = boxes.size(0);
  TORCH_CHECK(
      scores.numel() == count && (!groups.defined() || groups.numel() == count),
      "expected a score and a group for each of ", count, " boxes");
}

}  // namespace sfmamba::ops
