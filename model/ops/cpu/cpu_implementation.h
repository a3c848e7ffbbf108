#ifndef SFMAMBA_MODEL_OPS_CPU_CPU_IMPLEMENTATION_H_
#define SFMAMBA_MODEL_OPS_CPU_CPU_IMPLEMENTATION_H_

#include <memory>
#include <vector>

#include "model/config.h"
#include "model/ops/implementation.h"

namespace sfmamba::ops {

// The operators on the CPU, by our kernels and by oneDNN. Products and
// convolutions are computed in `precision`; norms, the scan, the residual
// stream and outputs in fp32. A precision that the processor does not support
// natively (fp16, and bf16 without AMX and AVX512-BF16) is computed by
// libtorch's operators, slowly.
//
// With kFloat and kBFloat16 a row of a product has the same bits whatever the
// other rows and the number of threads are.
class CpuImplementation : public Implementation {
 public:
  // What computes products and convolutions.
  enum class Products {
    kFloat,     // Our kernels in fp32.
    kBFloat16,  // Our kernels in bf16; what others read too is fp32.
    kOneDnn,    // oneDNN in bf16, and so is what is between them.
    kTorch,     // libtorch in the precision, without the processor's support.
  };

  // With the fastest products for the precision.
  explicit CpuImplementation(
      model::Precision precision = model::Precision::kFloat32);
  // `products` must be for the precision. They may be slow on this processor.
  CpuImplementation(model::Precision precision, Products products)
      : precision_(precision), products_(products) {}

  // Returns `wanted` if the processor supports it natively, otherwise fp32.
  static model::Precision NativePrecision(model::Precision wanted);

  // Returns whether most of the work in `precision` is loops of
  // model/ops/parallel.h, and not libtorch's or oneDNN's.
  static bool HasLoops(model::Precision precision);

  model::Precision precision() const { return precision_; }

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
  std::unique_ptr<WindowOp> MakeWindows(
      const WindowParameters& parameters) const override;
  std::unique_ptr<PoolingOp> MakePooling(
      const PoolingParameters& parameters) const override;
  std::unique_ptr<PyramidFusionOp> MakePyramidFusion(
      const PyramidFusionParameters& parameters) const override;
  at::Tensor Values(const ImageBatch& images) const override;
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
  Products ProductsOf(bool is_output) const {
    return is_output ? Products::kFloat : products_;
  }

  const model::Precision precision_;
  const Products products_;
};

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_CPU_CPU_IMPLEMENTATION_H_
