#include "model/ops/cpu/answer_ops.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ATen/ops/empty.h"
#include "kernels/detection/mask_runs.h"
#include "kernels/detection/nms.h"
#include "model/ops/detection_checks.h"

namespace sfmamba::ops {
namespace {

class PastedMask final : public model::InstanceMask {
 public:
  // The caller need not set `mask`, `by_rows`, `begin` and `end` of `paste`.
  PastedMask(std::vector<float> mask, const kernels::MaskRunsArgs& paste)
      : mask_(std::move(mask)), paste_(paste) {}

  Bounds bounds() const override {
    const kernels::PixelRect& area = paste_.area;
    return {area.left, area.top, area.width(), area.height()};
  }
  void AddRows(int begin, int end, base::LineRuns* runs) const override {
    Add(/*by_rows=*/true, begin, end, runs);
  }
  void AddColumns(int begin, int end, base::LineRuns* runs) const override {
    Add(/*by_rows=*/false, begin, end, runs);
  }

 private:
  void Add(bool by_rows, int begin, int end, base::LineRuns* runs) const {
    kernels::MaskRunsArgs args = paste_;
    args.mask = mask_.data();
    args.by_rows = by_rows;
    args.begin = begin;
    args.end = end;
    kernels::MaskRunsCpu(args, runs);
  }

  const std::vector<float> mask_;
  const kernels::MaskRunsArgs paste_;
};

}  // namespace

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

std::shared_ptr<const model::InstanceMask> MakeMask(const at::Tensor& mask,
                                                    const model::Box& box,
                                                    float threshold,
                                                    int picture_height,
                                                    int picture_width) {
  const at::Tensor probabilities = mask.contiguous();
  const float* values = probabilities.const_data_ptr<float>();
  return std::make_shared<PastedMask>(
      std::vector<float>(values, values + probabilities.numel()),
      kernels::MaskRunsArgs{nullptr, static_cast<int>(mask.size(0)), box.x1,
                            box.y1, box.x2, box.y2, threshold,
                            kernels::MaskArea(box.x1, box.y1, box.x2, box.y2,
                                              picture_height, picture_width)});
}

}  // namespace sfmamba::ops
