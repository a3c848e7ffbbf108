#include "ATen/ops/batch_norm.h"
#include "model/ops/answer_ops.h"
#include "model/ops/composed/concatenated_fusion.h"
#include "model/ops/ops.h"
#include "model/ops/parallel.h"
#include "model/ops/reference/reference_implementation.h"

namespace sfmamba::ops {
namespace {

class ReferencePooling : public PoolingOp {
 public:
  explicit ReferencePooling(const PoolingParameters& parameters)
      : norm_(parameters.norm) {}

  at::Tensor Forward(const at::Tensor& map) const override {
    if (!norm_.has_value()) return map.mean({2, 3});
    return at::batch_norm(map, norm_->weight, norm_->bias, norm_->mean,
                          norm_->var, /*training=*/false, /*momentum=*/0,
                          norm_->eps, /*cudnn_enabled=*/false)
        .mean({2, 3});
  }

 private:
  std::optional<BatchNorm> norm_;
};

}  // namespace

std::unique_ptr<PoolingOp> ReferenceImplementation::MakePooling(
    const PoolingParameters& parameters) const {
  return std::make_unique<ReferencePooling>(parameters);
}

std::unique_ptr<PyramidFusionOp> ReferenceImplementation::MakePyramidFusion(
    const PyramidFusionParameters& parameters) const {
  return std::make_unique<ConcatenatedFusion>(*this, parameters);
}

at::Tensor ReferenceImplementation::RoiMap(const at::Tensor& map) const {
  return map.contiguous(at::MemoryFormat::ChannelsLast);
}

at::Tensor ReferenceImplementation::RoiAlign(
    const std::vector<at::Tensor>& maps, const std::vector<int>& strides,
    const at::Tensor& rois, int size, float finest_scale) const {
  return ops::RoiAlign(maps, strides, rois, size, finest_scale);
}

at::Tensor ReferenceImplementation::Nms(const at::Tensor& boxes,
                                        const at::Tensor& scores,
                                        const at::Tensor& groups,
                                        float iou_threshold,
                                        int64_t max_kept) const {
  return ops::Nms(boxes, scores, groups, iou_threshold, max_kept);
}

void ReferenceImplementation::SegmentationArgmax(
    const at::Tensor& logits, int input_height, int input_width,
    bool confidence, model::Segmentation* out) const {
  ops::SegmentationArgmax(logits, input_height, input_width, confidence, out);
}

void ReferenceImplementation::ForEachPart(
    int64_t count, int64_t size,
    absl::FunctionRef<void(int64_t first, int64_t count)> body) const {
  ParallelParts(count, size, body);
}

}  // namespace sfmamba::ops
