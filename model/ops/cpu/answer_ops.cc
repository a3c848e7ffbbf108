#include "model/ops/cpu/answer_ops.h"

#include <algorithm>
#include <vector>

#include "ATen/ops/empty.h"
#include "kernels/vision/mask_paste.h"
#include "kernels/vision/nms.h"
#include "model/ops/detection_checks.h"

namespace sfmamba::ops {

at::Tensor Nms(const at::Tensor& boxes, const at::Tensor& scores,
               const at::Tensor& groups, float iou_threshold,
               int64_t max_kept) {
  const int64_t count = boxes.size(0);
  CheckNmsInputs(boxes, scores, groups);
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

model::InstanceMask PasteMask(const at::Tensor& mask, const model::Box& box,
                              float threshold, int picture_height,
                              int picture_width) {
  const at::Tensor probabilities = mask.contiguous();
  const kernels::PixelRect area = kernels::MaskArea(
      box.x1, box.y1, box.x2, box.y2, picture_height, picture_width);
  model::InstanceMask pasted{
      area.left, area.top, area.width(), area.height(), {}};
  pasted.data.resize(int64_t{pasted.width} * pasted.height);
  kernels::MaskPasteCpu({probabilities.const_data_ptr<float>(),
                         static_cast<int>(mask.size(0)), box.x1, box.y1, box.x2,
                         box.y2, threshold, area, pasted.data.data()});
  return pasted;
}

}  // namespace sfmamba::ops
