#include <algorithm>
#include <vector>

#include "ATen/ops/empty.h"
#include "kernels/vision/nms.h"
#include "kernels/vision/roi_align.h"
#include "model/ops/ops.h"
#include "model/ops/parallel.h"

namespace sfmamba::ops {

at::Tensor RoiAlign(const std::vector<at::Tensor>& maps,
                    const std::vector<int>& strides, const at::Tensor& rois,
                    int size, float finest_scale) {
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
  if (const DeviceOps* device = DeviceOpsOf(maps[0])) {
    return device->RoiAlign(maps, strides, rois, size, finest_scale);
  }
  kernels::RoiAlignArgs args{};
  args.num_levels = static_cast<int>(maps.size());
  for (size_t i = 0; i < maps.size(); ++i) {
    kernels::RoiAlignArgs::Level& level = args.levels[i];
    level.features = maps[i].const_data_ptr<float>();
    level.height = static_cast<int>(maps[i].size(1));
    level.width = static_cast<int>(maps[i].size(2));
    level.scale = 1.0f / static_cast<float>(strides[i]);
  }
  args.channels = static_cast<int>(channels);
  args.finest_scale = finest_scale;
  args.out_height = args.out_width = size;

  const at::Tensor boxes = rois.contiguous();
  const at::Tensor out =
      at::empty({rois.size(0), size, size, channels}, maps[0].options());
  const int64_t values = int64_t{size} * size * channels;
  ParallelFor(rois.size(0), /*grain=*/1, [&](int64_t begin, int64_t end) {
    kernels::RoiAlignArgs part = args;
    part.num_rois = static_cast<int>(end - begin);
    part.rois = boxes.const_data_ptr<float>() + 4 * begin;
    part.out = out.data_ptr<float>() + values * begin;
    kernels::RoiAlignCpu(part);
  });
  return out.permute({0, 3, 1, 2});
}

at::Tensor Nms(const at::Tensor& boxes, const at::Tensor& scores,
               const at::Tensor& groups, float iou_threshold,
               int64_t max_kept) {
  const int64_t count = boxes.size(0);
  TORCH_CHECK(
      scores.numel() == count && (!groups.defined() || groups.numel() == count),
      "expected a score and a group for each of ", count, " boxes");
  if (const DeviceOps* device = DeviceOpsOf(boxes)) {
    return device->Nms(boxes, scores, groups, iou_threshold, max_kept);
  }
  const at::Tensor dense_boxes = boxes.contiguous();
  const at::Tensor dense_scores = scores.contiguous();
  const at::Tensor dense_groups =
      groups.defined() ? groups.contiguous() : groups;
  std::vector<int32_t> kept(std::min(count, max_kept));
  kernels::NmsArgs args{};
  args.num_boxes = static_cast<int>(count);
  args.boxes = dense_boxes.const_data_ptr<float>();
  args.scores = dense_scores.const_data_ptr<float>();
  if (groups.defined()) args.groups = dense_groups.const_data_ptr<int32_t>();
  args.iou_threshold = iou_threshold;
  args.max_kept = static_cast<int>(kept.size());
  args.kept = kept.data();
  kept.resize(kernels::NmsCpu(args));

  const at::Tensor indices = at::empty({static_cast<int64_t>(kept.size())},
                                       boxes.options().dtype(at::kLong));
  std::copy(kept.begin(), kept.end(), indices.data_ptr<int64_t>());
  return indices;
}

}  // namespace sfmamba::ops
