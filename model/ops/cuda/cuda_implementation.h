#ifndef SFMAMBA_MODEL_OPS_CUDA_CUDA_IMPLEMENTATION_H_
#define SFMAMBA_MODEL_OPS_CUDA_CUDA_IMPLEMENTATION_H_

#include <memory>
#include <vector>

#include "model/config.h"
#include "model/ops/device_ops.h"
#include "model/ops/implementation.h"
#include "model/tuning/scan_plan_chooser.h"

namespace sfmamba::ops {

// The operators on a GPU, computed by our CUDA kernels and by NVIDIA's
// libraries. They enqueue work on the calling thread's stream and return.
// Unless stated otherwise, operators read and write tensors of type
// `precision`. Outputs of the network are always fp32. Norms and the scan
// compute in fp32, but may read and write other types.
class CudaImplementation : public Implementation {
 public:
  struct Options {
    model::Precision precision = model::Precision::kFloat32;
    // Chooses the plan of each scan, which says how the kernel divides its
    // work. The implementation does not own the chooser. The chooser must
    // outlive the implementation.
    const tuning::ScanPlanChooser* chooser = nullptr;
    ConvSearch conv_search = ConvSearch::kGuess;
    // Only for bf16 and fp16. If true, GELU is computed in its erf form, as in
    // fp32. If false, GELU is computed in its tanh form, which NVIDIA's
    // libraries can compute together with a matrix product. The results of the
    // two forms differ by at most 4.7e-4. This is about the rounding error of a
    // bf16 number near 0.2.
    bool exact_gelu = false;
  };

  // `device` runs the kernels of GPU `gpu`. It must outlive the implementation.
  CudaImplementation(const DeviceOps& device, at::Device gpu,
                     const Options& options)
      : device_(device), gpu_(gpu), options_(options) {}

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
  // Returns the type of the tensors that an operator reads and writes. This is
  // fp32 if the operator computes an output of the network (`is_output`).
  // Otherwise, it is the type of Options::precision.
  at::ScalarType TypeOf(bool is_output) const;

  const DeviceOps& device_;
  const at::Device gpu_;
  const Options options_;
};

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_CUDA_CUDA_IMPLEMENTATION_H_
