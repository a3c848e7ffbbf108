#include <vector>

#include "model/ops/composed/folded_pooling.h"
#include "model/ops/cpu/answer_ops.h"
#include "model/ops/cpu/cpu_implementation.h"
#include "model/ops/cpu/ops.h"
#include "model/ops/parallel.h"

namespace sfmamba::ops {
namespace {

// Returns a convolution's weight for input channels [begin, begin + count).
at::Tensor Slice(const at::Tensor& weight, int begin, int count) {
  return weight.narrow(1, begin, count).contiguous();
}

// Converts a 3x3 convolution [out, in, 3, 3] to a linear layer [9 * out, in].
// For each pixel, the layer computes what the pixel adds to the nine outputs
// around it.
Weights Taps(const at::Tensor& weight) {
  return {weight.permute({2, 3, 0, 1}).reshape({-1, weight.size(1)}), {}};
}

// Fuses the maps without concatenating them. The first map is convolved. Each
// other map is multiplied by the kernel's nine taps at its own size. The
// products are then resized and added. The result is the same sum in another
// order. For a map of half the height and width, this needs a quarter of the
// multiplications.
class TapFusion : public PyramidFusionOp {
 public:
  TapFusion(const CpuImplementation& implementation,
            const PyramidFusionParameters& parameters) {
    const Weights weights = FoldBatchNorm(parameters.weights, parameters.norm);
    const std::vector<int>& channels = parameters.in_channels;
    first_ = implementation.MakeConvolution(
        {{Slice(weights.weight, 0, channels[0]), weights.bias},
         /*norm=*/{},
         Activation::kNone,
         /*stride=*/1,
         /*groups=*/1,
         parameters.size});
    int begin = channels[0];
    for (size_t i = 1; i < channels.size(); ++i) {
      taps_.push_back(implementation.MakeLinear(
          {Taps(Slice(weights.weight, begin, channels[i])), {}}));
      begin += channels[i];
    }
  }

  at::Tensor Forward(const std::vector<at::Tensor>& maps) const override {
    at::Tensor y = first_->Forward(maps[0])
                       .to(at::kFloat)
                       .contiguous(at::MemoryFormat::ChannelsLast);
    for (size_t i = 0; i < taps_.size(); ++i) {
      const at::Tensor pixels =
          maps[i + 1].permute({0, 2, 3, 1}).to(at::kFloat).contiguous();
      AddConv3x3AfterResize(taps_[i]->Forward(pixels).to(at::kFloat), y);
    }
    return y.relu_();
  }

 private:
  std::unique_ptr<const ConvolutionOp> first_;
  // One layer with weights [9 * out, in] for each map except the first.
  std::vector<std::unique_ptr<const LinearOp>> taps_;
};

}  // namespace

std::unique_ptr<PoolingOp> CpuImplementation::MakePooling(
    const PoolingParameters& parameters) const {
  return std::make_unique<FoldedPooling>(parameters);
}

std::unique_ptr<PyramidFusionOp> CpuImplementation::MakePyramidFusion(
    const PyramidFusionParameters& parameters) const {
  return std::make_unique<TapFusion>(*this, parameters);
}

at::Tensor CpuImplementation::RoiMap(const at::Tensor& map) const {
  // Regions are computed in fp32 in every precision (docs/heads.md, "Regions").
  return map.to(at::kFloat).contiguous(at::MemoryFormat::ChannelsLast);
}

at::Tensor CpuImplementation::RoiAlign(const std::vector<at::Tensor>& maps,
                                       const std::vector<int>& strides,
                                       const at::Tensor& rois, int size,
                                       float finest_scale) const {
  return ops::RoiAlign(maps, strides, rois, size, finest_scale);
}

at::Tensor CpuImplementation::Nms(const at::Tensor& boxes,
                                  const at::Tensor& scores,
                                  const at::Tensor& groups, float iou_threshold,
                                  int64_t max_kept) const {
  return ops::Nms(boxes, scores, groups, iou_threshold, max_kept);
}

void CpuImplementation::SegmentationArgmax(const at::Tensor& logits,
                                           int input_height, int input_width,
                                           bool confidence,
                                           model::Segmentation* out) const {
  ops::SegmentationArgmax(logits, input_height, input_width, confidence, out);
}

void CpuImplementation::ForEachPart(
    int64_t count, int64_t size,
    absl::FunctionRef<void(int64_t first, int64_t count)> body) const {
  ParallelParts(count, size, body);
}

}  // namespace sfmamba::ops
