#include "model/ops/composed/concatenated_fusion.h"
#include "model/ops/composed/folded_pooling.h"
#include "model/ops/cuda/cuda_implementation.h"
#include "model/ops/detection_checks.h"

namespace sfmamba::ops {

std::unique_ptr<PoolingOp> CudaImplementation::MakePooling(
    const PoolingParameters& parameters) const {
  return std::make_unique<FoldedPooling>(parameters);
}

std::unique_ptr<PyramidFusionOp> CudaImplementation::MakePyramidFusion(
    const PyramidFusionParameters& parameters) const {
  return std::make_unique<ConcatenatedFusion>(*this, parameters);
}

at::Tensor CudaImplementation::RoiMap(const at::Tensor& map) const {
  return map.contiguous(at::MemoryFormat::ChannelsLast);
}

at::Tensor CudaImplementation::RoiAlign(const std::vector<at::Tensor>& maps,
                                        const std::vector<int>& strides,
                                        const at::Tensor& rois, int size,
                                        float finest_scale) const {
  CheckRoiMaps(maps, strides);
  return device_.RoiAlign(maps, strides, rois.to(maps[0].device()), size,
                          finest_scale);
}

at::Tensor CudaImplementation::Nms(const at::Tensor& boxes,
                                   const at::Tensor& scores,
                                   const at::Tensor& groups,
                                   float iou_threshold,
                                   int64_t max_kept) const {
  CheckNmsInputs(boxes, scores, groups);
  return device_
      .Nms(boxes.to(gpu_), scores.to(gpu_),
           groups.defined() ? groups.to(gpu_) : groups, iou_threshold, max_kept)
      .cpu();
}

void CudaImplementation::SegmentationArgmax(const at::Tensor& logits,
                                            int input_height, int input_width,
                                            bool confidence,
                                            model::Segmentation* out) const {
  device_.SegmentationArgmax(logits, input_height, input_width, confidence,
                             out);
}

void CudaImplementation::ForEachPart(
    int64_t count, int64_t /*size*/,
    absl::FunctionRef<void(int64_t first, int64_t count)> body) const {
  // A GPU is fastest if it computes all items at once.
  body(0, count);
}

}  // namespace sfmamba::ops
