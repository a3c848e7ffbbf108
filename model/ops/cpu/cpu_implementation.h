#ifndef SFMAMBA_MODEL_OPS_CPU_CPU_IMPLEMENTATION_H_
#define SFMAMBA_MODEL_OPS_CPU_CPU_IMPLEMENTATION_H_

#include <memory>
#include <vector>

#include "model/config.h"
#include "model/ops/implementation.h"

namespace sfmamba::ops {

// The operators on the CPU, computed by our kernels.
//
// If the precision is fp32 or bf16, matrix products and convolutions multiply
// in this type and sum in fp32. Even in bf16, some convolutions multiply in
// fp32. These are convolutions with several groups, convolutions by Winograd's
// method, and all convolutions on CPUs without the instructions for our
// kernels. A value may be bf16 if only products read it. Everything else is
// fp32, for example norms, the scan, the residual stream and the network's
// outputs.
//
// If the precision is int8, linear layers multiply in int8. Convolutions also
// do if they have one group and a kernel larger than 1x1. Exceptions are
// outputs, a scan's projections and the first convolution. Attention multiplies
// in bf16 if the CPU has instructions for it. The rest is fp32.
//
// The bits of a row of a product do not depend on the other rows or on the
// number of threads.
class CpuImplementation : public Implementation {
 public:
  // `precision` is fp32, bf16 or int8. bf16 and int8 are slow on processors
  // that have no instructions for them. If `int8_convolutions` is false, int8
  // is for linear layers only. Detectors need this, because int8 convolutions
  // would move their boxes too much.
  explicit CpuImplementation(
      model::Precision precision = model::Precision::kFloat32,
      bool int8_convolutions = true);

  // Returns `wanted` if the processor has instructions for it. If not, returns
  // fp32.
  static model::Precision NativePrecision(model::Precision wanted);

  // Returns whether most of the work is done by loops of model/ops/parallel.h.
  // If not, libtorch's operators do it.
  static bool HasLoops();

  // Returns the number of images that a thread should compute together. It is
  // more than one on CPUs that multiply very fast. There, reading all weights
  // from memory for each image would take longer than the products. An image's
  // result has the same bits for every number of images.
  static int64_t ImagesAtOnce();

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

 private:
  // Returns the type that an operator multiplies in.
  at::ScalarType ProductsOf(bool is_output) const {
    return is_output ? at::kFloat : products_;
  }

  const at::ScalarType products_;
  const bool int8_, int8_convolutions_;
  const at::ScalarType attention_;  // The type that attention multiplies in.
};

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_CPU_CPU_IMPLEMENTATION_H_
