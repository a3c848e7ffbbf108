#ifndef SFMAMBA_MODEL_OPS_REFERENCE_REFERENCE_IMPLEMENTATION_H_
#define SFMAMBA_MODEL_OPS_REFERENCE_REFERENCE_IMPLEMENTATION_H_

#include <memory>
#include <vector>

#include "model/ops/implementation.h"

namespace sfmamba::ops {

// Computes the operators step by step, as the papers define them. It uses
// libtorch's operators on the CPU in fp32. Tests compare the other
// implementations with this one.
class ReferenceImplementation : public Implementation {
 public:
  std::unique_ptr<LinearOp> MakeLinear(
      const LinearParameters& parameters) const override;
  std::unique_ptr<ConvolutionOp> MakeConvolution(
      const ConvolutionParameters& parameters) const override;
  std::unique_ptr<StemOp> MakeStem(
      const ConvolutionParameters& parameters) const override;
  std::unique_ptr<LayerNormOp> MakeLayerNorm(
      const LayerNormParameters& parameters) const override;
  std::unique_ptr<ShortConvolutionOp> MakeShortConvolution(
      const ShortConvolutionParameters& parameters) const override;
  std::unique_ptr<ScanProjectionOp> MakeScanProjection(
      const ScanProjectionParameters& parameters) const override;
  std::unique_ptr<SelectiveScanOp> MakeSelectiveScan(
      const ScanParameters& parameters) const override;
  std::unique_ptr<CrossScanOp> MakeCrossScan(
      const CrossScanParameters& parameters) const override;
  std::unique_ptr<WindowOp> MakeWindows(
      const WindowParameters& parameters) const override;
  std::unique_ptr<PoolingOp> MakePooling(
      const PoolingParameters& parameters) const override;
  std::unique_ptr<PyramidFusionOp> MakePyramidFusion(
      const PyramidFusionParameters& parameters) const override;
  std::unique_ptr<GatedConvolutionOp> MakeGatedConvolution(
      const GatedConvolutionParameters& parameters) const override;
  at::Tensor Values(const ImageBatch& images) const override;
  void Activate(at::Tensor& x, model::Nonlinearity activation) const override;
  void FillEndsWithMean(at::Tensor& x) const override;
  at::Tensor Attention(const at::Tensor& q, const at::Tensor& k,
                       const at::Tensor& v) const override;
  at::Tensor RoiMap(const at::Tensor& map) const override;
  at::Tensor RoiAlign(const std::vector<at::Tensor>& maps,
                      const std::vector<int>& strides, const at::Tensor& rois,
                      int size, float finest_scale) const override;
  at::Tensor Nms(const at::Tensor& boxes, const at::Tensor& scores,
                 const at::Tensor& groups, float iou_threshold,
                 int64_t max_kept) const override;
  void SegmentationArgmax(const at::Tensor& logits, int input_height,
                          int input_width, bool confidence,
                          model::Segmentation* out) const override;
  void ForEachPart(int64_t count, int64_t size,
                   absl::FunctionRef<void(int64_t first, int64_t count)> body)
      const override;
};

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_REFERENCE_REFERENCE_IMPLEMENTATION_H_
