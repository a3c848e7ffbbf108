#ifndef SFMAMBA_MODEL_OPS_CPU_OPS_H_
#define SFMAMBA_MODEL_OPS_CPU_OPS_H_

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/types/span.h"
#include "kernels/linear/int8_convolution.h"
#include "kernels/linear/packed_gemm.h"
#include "kernels/linear/winograd_conv3x3.h"
#include "model/ops/kernel_types.h"
#include "model/ops/sequence_ops.h"
#include "model/result.h"

namespace sfmamba::ops {

// The CPU's kernels as operations on tensors. The threads of
// model/ops/parallel.h divide the work. The results do not depend on the number
// of threads.
//
// Unless a function's comment says otherwise, activations are [tokens,
// channels] in fp32 or bf16, and all activations of a call have the same type.
// The last axis is contiguous, and rows may be any distance apart. Each
// `length` consecutive tokens form a sequence. Parameters are contiguous fp32.

// Returns the LayerNorm of x, see kernels/sequence/layer_norm.h. x is
// contiguous and is written only with `swap`. The result has x's shape and type
// `type`, which must be x's type unless x is fp32.
at::Tensor LayerNorm(at::Tensor& x, const at::Tensor& gamma,
                     const at::Tensor& beta, float eps, int64_t length,
                     bool swap, at::ScalarType type);

// The tensors of a depthwise convolution of x to y along sequences, followed by
// SiLU. See kernels/sequence/depthwise_conv1d.h.
struct SequenceConvolution {
  at::Tensor x;
  at::Tensor weight;  // [taps, channels]
  at::Tensor bias;    // [channels] or undefined.
  at::Tensor y;       // Written.
};

// Runs several convolutions of equal sizes in one loop. `left` is the number of
// taps before the token.
void DepthwiseConvSilu(absl::Span<const SequenceConvolution> convolutions,
                       int left, int64_t length);

// Writes the selective scan of u to y, see kernels/scan/selective_scan.h. u, dt
// and y are [tokens, channels]. B and C are [tokens, states] and have the same
// distance between rows.
void SelectiveScan(const ScanParameters& scan, const at::Tensor& u,
                   const at::Tensor& dt, const at::Tensor& B,
                   const at::Tensor& C, int64_t length, const at::Tensor& y);

// Computes x = gelu(x) in place, in the tanh form. x must be dense in memory,
// with its axes in any order.
void GeluTanh(at::Tensor& x);

// Sets the first and the last token of each sequence to the mean of the others.
// x is [sequences, tokens, channels], contiguous.
void FillEndsWithMean(at::Tensor& x);

// Writes the normalised image to `image`, a view [3, height, width] with any
// strides. See kernels/pixels/image_normalize.h. If `plane` is 0, `rgb` is
// [height, width, 3]. If not, `rgb` has three planes. Each begins `plane` bytes
// after the previous one.
void NormalizeImage(const uint8_t* rgb, int64_t plane,
                    const std::array<float, 3>& mean,
                    const std::array<float, 3>& std, at::Tensor image);

// ---- Products ----

// A weight [out, in], packed by kernels/linear/packed_gemm.h.
struct PackedWeights {
  at::Tensor values;  // fp32 or bf16.
  int64_t in, out;
  bool split = false;  // True if the fp32 `values` are SplitFloats.
};

// Calls `body` with a value of the type that the kernels use for these weights.
template <typename Body>
void DispatchWeights(const PackedWeights& weights, Body body) {
  if (weights.split) {
    body(kernels::SplitFloat());
  } else {
    Dispatch(weights.values, body);
  }
}

// Packs the weight for products in `type`, fp32 or bf16. For fp32, finite
// weights are packed as SplitFloats if the CPU multiplies them faster than
// floats. A product splits a SplitFloat into three bf16 values, see
// kernels/linear/packed_gemm.h.
PackedWeights PackGemm(const at::Tensor& weight,
                       at::ScalarType type = at::kFloat);

// How a product writes its sums, x W^T + bias.
enum class GemmOutput {
  kSet,      // y = the sums
  kAdd,      // y += the sums, in fp32
  kGeluErf,  // y = gelu(the sums) in the erf form
};

// Multiplies x [rows, in] by the weights and adds bias [out], if it is defined.
// y is [rows, out]. Sums and bias are fp32. If the weights are fp32, x and y
// are fp32, too. If the weights are bf16, x and y may be fp32 or bf16. An fp32
// x is then rounded to bf16 before it is multiplied. With GemmOutput::kAdd, y
// must be fp32. The bits of a row of y do not depend on the other rows of x.
void Gemm(const at::Tensor& x, const PackedWeights& weights,
          const at::Tensor& bias, GemmOutput output, at::Tensor y);

// A weight [out, in], rounded and packed by kernels/linear/int8_gemm.h.
struct Int8PackedWeights {
  at::Tensor values, scales, excess;
  int64_t in, out;
};

Int8PackedWeights PackInt8Gemm(const at::Tensor& weight);

// Like Gemm() above, but the rows of x are first rounded to 8 bits. x and y are
// fp32.
void Gemm(const at::Tensor& x, const Int8PackedWeights& weights,
          const at::Tensor& bias, GemmOutput output, at::Tensor y);

// A convolution by kernels/linear/winograd_conv3x3.h, which computes tiles of
// side x side pixels.
struct WinogradWeights {
  int side;
  int64_t out;
  at::Tensor values;  // Packed.
  at::Tensor bias;    // [out] or undefined.
};

// Packs weight [out, in, 3, 3].
WinogradWeights PackWinograd(const at::Tensor& weight, const at::Tensor& bias,
                             int side);

// Returns the convolution [N, out, H, W] of x [N, in, H, W]. Both are fp32 and
// channels-last in memory.
at::Tensor WinogradConv(const at::Tensor& x, const WinogradWeights& convolution,
                        kernels::WinogradActivation activation);

// Adds the convolution, without an activation, to `residual`. No other tensor
// may share the memory of `residual`.
void AddWinogradConv(const at::Tensor& x, const WinogradWeights& convolution,
                     at::Tensor& residual);

// A convolution by kernels/linear/gemm_convolution.h, with one group and an odd
// kernel. Its results are clamped to [low, high].
struct GemmConvWeights {
  int kernel, stride;
  PackedWeights weights;  // [out, kernel * kernel * in]
  at::Tensor bias;        // [out] or undefined.
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
  bool gelu = false;                   // GELU in the tanh form follows.
  at::ScalarType result = at::kFloat;  // bf16 only with weights of bf16.
};

// Packs weight [out, in, kernel, kernel] for products in `type`, fp32 or bf16.
GemmConvWeights PackGemmConv(const at::Tensor& weight, const at::Tensor& bias,
                             int stride, at::ScalarType type = at::kFloat);

// Returns the convolution of x [N, in, H, W] with padding (kernel - 1) / 2. The
// result is [N, out, ceil(H / stride), ceil(W / stride)]. Both are
// channels-last in memory. x is fp32, or bf16 if the weights are bf16.
at::Tensor GemmConv(const at::Tensor& x, const GemmConvWeights& convolution);

// Adds the convolution, which must have stride 1, to `residual` without an
// activation. No other tensor may share the memory of `residual`.
void AddGemmConv(const at::Tensor& x, const GemmConvWeights& convolution,
                 at::Tensor& residual);

// A convolution by kernels/linear/int8_convolution.h, with one group and an odd
// kernel.
struct Int8ConvWeights {
  int kernel, stride;
  Int8PackedWeights weights;  // [out, kernel * kernel * in]
  at::Tensor bias;            // [out] or undefined.
  kernels::Int8Activation activation = kernels::Int8Activation::kNone;
};

// Packs weight [out, in, kernel, kernel]. `in` is a multiple of 4.
Int8ConvWeights PackInt8Conv(const at::Tensor& weight, const at::Tensor& bias,
                             int stride);

// Like GemmConv() and AddGemmConv(), but x, which is fp32, is first rounded to
// 8 bits.
at::Tensor Int8Conv(const at::Tensor& x, const Int8ConvWeights& convolution);
void AddInt8Conv(const at::Tensor& x, const Int8ConvWeights& convolution,
                 at::Tensor& residual);

// A convolution of each channel by itself. Its results are clamped to [low,
// high]. See kernels/linear/depthwise_convolution.h.
struct DepthwiseWeights {
  int kernel, stride;
  at::Tensor values;  // [kernel, kernel, channels]
  at::Tensor bias;    // [channels] or undefined.
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
};

// Packs weight [channels, 1, kernel, kernel].
DepthwiseWeights PackDepthwise(const at::Tensor& weight, const at::Tensor& bias,
                               int stride);

// Convolves each channel by itself. Shapes and orders in memory are as for
// GemmConv().
at::Tensor DepthwiseConv(const at::Tensor& x,
                         const DepthwiseWeights& convolution);

// ---- Attention ----

// Returns softmax(q k^T / sqrt(d)) v for each sequence and head. q is
// [sequences, heads, queries, d], k and v are [sequences, heads, tokens, d].
// All are fp32 or bf16, with a contiguous last axis.
// kernels/sequence/attention.h computes the products in this type. The result
// has q's shape and type. The heads of a token lie side by side in memory.
at::Tensor Attention(const at::Tensor& q, const at::Tensor& k,
                     const at::Tensor& v);

// Computes Attention() with libtorch's operator, on the threads of
// model/ops/parallel.h.
at::Tensor AttentionByLibtorch(const at::Tensor& q, const at::Tensor& k,
                               const at::Tensor& v);

// ---- Dense heads ----

// Returns the features [n, C, size, size] of regions rois [n, 4] of one image,
// channels-last in memory. See kernels/detection/roi_align.h. The maps are [C,
// H, W], from fine to coarse, channels-last in memory, and fp32. Map i has
// stride strides[i].
at::Tensor RoiAlign(const std::vector<at::Tensor>& maps,
                    const std::vector<int>& strides, const at::Tensor& rois,
                    int size, float finest_scale);

// Finds the best class of each pixel, see
// kernels/segmentation/segmentation_argmax.h. logits is [C, H, W],
// channels-last in memory, computed from an input of input_height x
// input_width. `out` must have the size of the result. Fills the labels and
// areas of `out`, and its confidence if `confidence`.
void SegmentationArgmax(const at::Tensor& logits, int input_height,
                        int input_width, bool confidence,
                        model::Segmentation* out);

// The second step of a 3x3 convolution over maps that are resized from [h, w]
// to [H, W]. In the first step, the caller multiplies each pixel of the small
// maps by the weights of the kernel's nine taps. This gives C products for each
// tap. `taps` [N, h, w, 9 * C], contiguous, contains these products. This
// function resizes the products to [H, W]. It adds them to y [N, C, H, W],
// shifted by the offsets of their taps. y is channels-last in memory. Both
// tensors are fp32. See kernels/segmentation/conv3x3_after_resize.h.
void AddConv3x3AfterResize(const at::Tensor& taps, at::Tensor& y);

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_CPU_OPS_H_
