#ifndef SFMAMBA_MODEL_OPS_OPS_H_
#define SFMAMBA_MODEL_OPS_OPS_H_

#include <array>
#include <cstdint>
#include <vector>

#include "ATen/core/Tensor.h"
#include "kernels/linear/winograd_conv3x3.h"
#include "model/ops/device_ops.h"
#include "model/result.h"

namespace sfmamba::ops {

// The kernels as operations on tensors. The one place that takes tensors' data
// pointers, and shares work out over libtorch's intra-op threads or, where
// OnDevice(tensor), enqueues it on the calling thread's stream.
//
// Activations are [tokens, channels], fp32 or bf16 (on a device also fp16), all
// of one type in a call; the last axis is dense, rows may be any distance
// apart. `length` tokens in a row are one sequence. Parameters are contiguous
// fp32. All of them lie on one device or on the CPU. Results do not depend on
// the number of threads.

// As in kernels/sequence/layer_norm.h, eps 1e-5; x is written only by `swap`. x
// is contiguous, the result like it and of `type`, which is x's unless x is
// fp32 on a device. There x += `add` comes before, if it is defined: as many
// values, contiguous, of `type`.
at::Tensor LayerNorm(at::Tensor& x, const at::Tensor& gamma,
                     const at::Tensor& beta, int64_t length, bool swap,
                     at::ScalarType type, const at::Tensor& add = {});

// kernels/sequence/depthwise_conv1d.h with SiLU: one convolution, or two alike
// in taps, `left` (taps before the token itself) and length; each y is written.
void DepthwiseConvSilu(absl::Span<const ShortConv> convs, int left,
                       int64_t length);

// kernels/scan/selective_scan.h. u, dt, y [tokens, channels], B, C [tokens,
// states] with B's and C's rows the same distance apart; y is written. The
// sequences are folded into `rows` rows: the CPU, whose order of operations is
// always the same, does not care.
void SelectiveScan(const Scan& scan, const at::Tensor& u, const at::Tensor& dt,
                   const at::Tensor& B, const at::Tensor& C, int64_t length,
                   int64_t rows, at::Tensor y);

// x = gelu(x) in place, exact form; x contiguous [rows, channels].
void GeluErf(at::Tensor& x);

// x = gelu(x) in place, tanh form, on the CPU; x is dense in memory, in any
// order.
void GeluTanh(at::Tensor& x);

// Of x [sequences, tokens, channels], contiguous: the first and the last token
// of each sequence become the mean of the others.
void FillEndsWithMean(at::Tensor& x);

// A uint8 image [height, width, 3] into `image`, a view [3, height, width] of
// any strides, on the CPU. As in kernels/vision/image_normalize.h.
void NormalizeImage(const uint8_t* rgb, const std::array<float, 3>& mean,
                    const std::array<float, 3>& std, at::Tensor image);

// ---- Products ----

// A weight [out, in] as kernels/linear/packed_gemm.h wants it.
struct PackedWeights {
  at::Tensor values;
  int64_t in, out;
};

PackedWeights PackGemm(const at::Tensor& weight);

// y = x W^T + bias, or y += that: x [rows, in], bias [out] or undefined, y
// [rows, out], all fp32. A row's bits depend on nothing but itself.
void Gemm(const at::Tensor& x, const PackedWeights& weights,
          const at::Tensor& bias, bool add, at::Tensor y);

// kernels/linear/winograd_conv3x3.h: weight [out, in, 3, 3], packed.
at::Tensor PackWinograd(const at::Tensor& weight);

// x [N, in, H, W] to [N, out, H, W], fp32, both channels-last in memory; bias
// [out] or undefined.
at::Tensor WinogradConv(const at::Tensor& x, const at::Tensor& weight,
                        const at::Tensor& bias, int64_t out,
                        kernels::WinogradActivation activation);

// residual += that, without activation; residual's memory must not be shared.
void AddWinogradConv(const at::Tensor& x, const at::Tensor& weight,
                     const at::Tensor& bias, at::Tensor& residual);

// ---- Dense heads ----

// kernels/vision/roi_align.h on the maps of one image, fp32 [C, H, W] each (on
// a device of any type), channels-last in memory, from fine to coarse: level i
// has stride strides[i]. rois [n, 4] to [n, C, size, size], channels-last.
at::Tensor RoiAlign(const std::vector<at::Tensor>& maps,
                    const std::vector<int>& strides, const at::Tensor& rois,
                    int size, float finest_scale);

// kernels/vision/nms.h: boxes [n, 4], scores [n], groups [n] int32 or undefined
// (one group), to the indices of those kept, int64, best first, at most
// `max_kept`.
at::Tensor Nms(const at::Tensor& boxes, const at::Tensor& scores,
               const at::Tensor& groups, float iou_threshold, int64_t max_kept);

// kernels/vision/mask_paste.h: mask [S, S] of `box` in a picture. On this
// thread.
model::InstanceMask PasteMask(const at::Tensor& mask, const model::Box& box,
                              float threshold, int picture_height,
                              int picture_width);

// kernels/vision/segmentation_argmax.h: logits [C, H, W], channels-last in
// memory, of an input of input_height x input_width, at the size that `out` has
// already; fills its labels, areas and, if `confidence`, its confidence.
void SegmentationArgmax(const at::Tensor& logits, int input_height,
                        int input_width, bool confidence,
                        model::Segmentation* out);

// kernels/vision/conv3x3_after_resize.h: taps [N, h, w, 9 * C], contiguous, are
// resized and added to y [N, C, H, W], channels-last in memory; both fp32.
void AddConv3x3AfterResize(const at::Tensor& taps, at::Tensor& y);

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_OPS_H_
