#ifndef SFMAMBA_MODEL_OPS_CUDA_CUDA_OPS_H_
#define SFMAMBA_MODEL_OPS_CUDA_CUDA_OPS_H_

#include "kernels/cuda/cuda_stream.h"
#include "model/ops/device_ops.h"

namespace sfmamba::ops {

// DeviceOps implemented by our CUDA kernels and by libtorch's operators, which
// call cuBLAS and cuDNN. A refused launch throws c10::Error.
class CudaOps : public DeviceOps {
 public:
  // Returns the stream on which work on `x` is enqueued.
  using StreamOf = kernels::CudaStream (*)(const at::Tensor& x);

  explicit CudaOps(StreamOf stream_of) : stream_of_(stream_of) {}

  void LayerNorm(at::Tensor& x, const at::Tensor& add, const at::Tensor& gamma,
                 const at::Tensor& beta, float eps, int64_t length, bool swap,
                 const at::Tensor& y) const override;
  void LayerNormKeeping(const at::Tensor& x, const at::Tensor& add,
                        const at::Tensor& gamma, const at::Tensor& beta,
                        float eps, int64_t first, const at::Tensor& kept,
                        const at::Tensor& y) const override;
  void DepthwiseConvSilu(absl::Span<const ShortConv> convs, int left,
                         int64_t length) const override;
  void SelectiveScan(const Scan& scan, const at::Tensor& u,
                     const at::Tensor& dt, const at::Tensor& B,
                     const at::Tensor& C, int64_t length, int64_t rows,
                     const at::Tensor& y) const override;
  void CrossScan(const Scan& scan, const at::Tensor& u, const at::Tensor& dt,
                 const at::Tensor& B, const at::Tensor& C,
                 const at::Tensor& y) const override;
  void Activate(const at::Tensor& x, const at::Tensor& bias,
                kernels::CudaActivation activation) const override;
  void AddBiased(const at::Tensor& x, const at::Tensor& bias,
                 const at::Tensor& y) const override;
  void FillEndsWithMean(const at::Tensor& x) const override;
  void ConvolveDepthwise(const at::Tensor& x,
                         const DepthwiseConvWeights& weights,
                         const at::Tensor& y) const override;
  void NormalizeImages(const PixelBatch& pixels,
                       const at::Tensor& y) const override;
  void ConvolvePixels(const PixelBatch& pixels, const PixelConvWeights& weights,
                      const at::Tensor& y) const override;
  void WindowPartition(const at::Tensor& map, const WindowGrid& grid,
                       WindowEnds ends,
                       const at::Tensor& windows) const override;
  void WindowReverse(const at::Tensor& windows, const WindowGrid& grid,
                     const at::Tensor& map) const override;
  at::Tensor RoiAlign(const std::vector<at::Tensor>& maps,
                      const std::vector<int>& strides, const at::Tensor& rois,
                      int size, float finest_scale) const override;
  at::Tensor Nms(const at::Tensor& boxes, const at::Tensor& scores,
                 const at::Tensor& groups, float iou_threshold,
                 int64_t max_kept) const override;
  at::Tensor Linear(const at::Tensor& x, const at::Tensor& W,
                    const at::Tensor& bias) const override;
  at::Tensor LinearGeluTanh(const at::Tensor& x, const at::Tensor& W,
                            const at::Tensor& bias) const override;
  void AddLinear(const at::Tensor& x, const at::Tensor& W,
                 const at::Tensor& y) const override;
  at::Tensor Convolve(const at::Tensor& x,
                      const ConvWeights& weights) const override;
  at::Tensor Attention(const at::Tensor& q, const at::Tensor& k,
                       const at::Tensor& v) const override;
  void SegmentationArgmax(const at::Tensor& logits, int input_height,
                          int input_width, bool confidence,
                          model::Segmentation* out) const override;

 private:
  StreamOf stream_of_;
};

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_CUDA_CUDA_OPS_H_
