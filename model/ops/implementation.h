#ifndef SFMAMBA_MODEL_OPS_IMPLEMENTATION_H_
#define SFMAMBA_MODEL_OPS_IMPLEMENTATION_H_

#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "model/config.h"
#include "model/ops/convolution_op.h"
#include "model/ops/gated_ops.h"
#include "model/ops/head_ops.h"
#include "model/ops/layer_norm_op.h"
#include "model/ops/linear_op.h"
#include "model/ops/sequence_ops.h"
#include "model/ops/window_op.h"
#include "model/result.h"

namespace sfmamba::ops {

// Makes the operators from which layers are built. An implementation prepares
// an operator's weights once, when the model is loaded. It transforms and packs
// them and chooses the type in which the operator computes. A model has one
// implementation, which is chosen where the model is made. Layers only combine
// its operators.
//
// Immutable, so thread-safe. Must outlive its operators. The weights in its
// arguments are fp32, on the implementation's device. Methods throw c10::Error
// if an argument is invalid or an operation fails.
class Implementation {
 public:
  virtual ~Implementation() = default;

  // ---- Operators that are prepared at load ----

  virtual std::unique_ptr<LinearOp> MakeLinear(
      const LinearParameters& parameters) const = 0;
  virtual std::unique_ptr<ConvolutionOp> MakeConvolution(
      const ConvolutionParameters& parameters) const = 0;
  // `parameters` must have stride 2 and a kernel of 3 x 3.
  virtual std::unique_ptr<StemOp> MakeStem(
      const ConvolutionParameters& parameters) const = 0;
  virtual std::unique_ptr<LayerNormOp> MakeLayerNorm(
      const LayerNormParameters& parameters) const = 0;
  virtual std::unique_ptr<ShortConvolutionOp> MakeShortConvolution(
      const ShortConvolutionParameters& parameters) const = 0;
  virtual std::unique_ptr<ScanProjectionOp> MakeScanProjection(
      const ScanProjectionParameters& parameters) const = 0;
  virtual std::unique_ptr<SelectiveScanOp> MakeSelectiveScan(
      const ScanParameters& parameters) const = 0;
  virtual std::unique_ptr<CrossScanOp> MakeCrossScan(
      const CrossScanParameters& parameters) const = 0;
  virtual std::unique_ptr<WindowOp> MakeWindows(
      const WindowParameters& parameters) const = 0;
  virtual std::unique_ptr<PoolingOp> MakePooling(
      const PoolingParameters& parameters) const = 0;
  virtual std::unique_ptr<PyramidFusionOp> MakePyramidFusion(
      const PyramidFusionParameters& parameters) const = 0;
  virtual std::unique_ptr<GatedConvolutionOp> MakeGatedConvolution(
      const GatedConvolutionParameters& parameters) const = 0;

  // ---- Operators without parameters ----

  // Returns the images' normalised values [N, 3, H, W], with 0 in the padding.
  virtual at::Tensor Values(const ImageBatch& images) const = 0;
  // Computes x = activation(x) in place. x must be dense in memory, with its
  // axes in any order.
  virtual void Activate(at::Tensor& x,
                        model::Nonlinearity activation) const = 0;
  // Sets the first and the last token of each sequence to the mean of the
  // others. x is [sequences, tokens, channels], contiguous.
  virtual void FillEndsWithMean(at::Tensor& x) const = 0;
  // Returns softmax(q k^T / sqrt(d)) v. q is [N, heads, queries, d]. k and v
  // are [N, heads, tokens, d]. The last axis of q, k and v must be contiguous.
  // Their other axes may have any strides.
  virtual at::Tensor Attention(const at::Tensor& q, const at::Tensor& k,
                               const at::Tensor& v) const = 0;

  // Converts map [N, C, H, W] to the form that RoiAlign() reads. This form is
  // channels-last in memory and has a type that RoiAlign() supports.
  virtual at::Tensor RoiMap(const at::Tensor& map) const = 0;
  // Returns the features [n, C, size, size] of n regions of one image,
  // channels-last in memory. `rois` [n, 4] contains the corners x1, y1, x2 and
  // y2 of each region, in pixels of the image, and is on the CPU. `maps` are
  // the image's maps [C, H, W], from fine to coarse. Each of them is a part of
  // a tensor that RoiMap() returned. Map i has stride strides[i]. See
  // kernels/detection/roi_align.h.
  virtual at::Tensor RoiAlign(const std::vector<at::Tensor>& maps,
                              const std::vector<int>& strides,
                              const at::Tensor& rois, int size,
                              float finest_scale) const = 0;
  // Non-maximum suppression, see kernels/detection/nms.h. boxes is [n, 4] and
  // scores is [n]. groups is int32 [n], or undefined if all boxes are in one
  // group. Returns the indices of at most `max_kept` boxes, as int64, the best
  // first. All tensors are on the CPU.
  virtual at::Tensor Nms(const at::Tensor& boxes, const at::Tensor& scores,
                         const at::Tensor& groups, float iou_threshold,
                         int64_t max_kept) const = 0;
  // Finds the best class of each pixel, see
  // kernels/segmentation/segmentation_argmax.h. logits is [C, H, W], computed
  // from an input of input_height x input_width. `out` must have the size of
  // the result. Fills the labels and areas of `out`. If `confidence` is true,
  // also fills the confidence of `out`.
  virtual void SegmentationArgmax(const at::Tensor& logits, int input_height,
                                  int input_width, bool confidence,
                                  model::Segmentation* out) const = 0;

  // Divides [0, count) into parts and calls body(first, count) for each part,
  // possibly for several parts at the same time. If one large part is fastest
  // on the device, there is only one part. Otherwise, each part has `size`
  // items, and the last part may have fewer. The division does not depend on
  // the number of threads.
  virtual void ForEachPart(
      int64_t count, int64_t size,
      absl::FunctionRef<void(int64_t first, int64_t count)> body) const = 0;
};

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_IMPLEMENTATION_H_
