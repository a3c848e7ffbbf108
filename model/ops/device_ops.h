#ifndef SFMAMBA_MODEL_OPS_DEVICE_OPS_H_
#define SFMAMBA_MODEL_OPS_DEVICE_OPS_H_

#include <array>
#include <cstdint>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/types/span.h"
#include "kernels/cuda/cuda_activation.h"
#include "model/ops/window_grid.h"
#include "model/result.h"
#include "model/tuning/scan_plan_chooser.h"

namespace sfmamba::ops {

// A scan's parameters, see kernels/scan/selective_scan.h.
struct Scan {
  at::Tensor A;     // [states, channels], negative
  at::Tensor D;     // [channels]
  at::Tensor bias;  // [channels], the whole bias of dt
  // Not owned, and must outlive this object.
  const tuning::ScanPlanChooser* chooser = nullptr;
};

// A depthwise convolution of x to y, see kernels/sequence/depthwise_conv1d.h.
struct ShortConv {
  at::Tensor x;
  at::Tensor weight, bias;  // [taps, channels], and [channels] or undefined
  at::Tensor y;
};

// How a GPU's library chooses the algorithm for a convolution.
enum class ConvSearch {
  kFixed,    // An algorithm with a fixed order of operations.
  kGuess,    // By a heuristic, for sizes that rarely recur.
  kMeasure,  // By timing all algorithms when a size first occurs. Takes long.
};

// A two-dimensional convolution: its weight [out, in / groups, kernel, kernel],
// channels-last in memory, and its parameters.
struct ConvWeights {
  at::Tensor weight;
  int stride = 1;
  int padding = 0;  // Zeros on each side.
  int groups = 1;
  ConvSearch search = ConvSearch::kGuess;
};

// A convolution of each channel by itself, see
// kernels/linear/depthwise_convolution_cuda.h.
struct DepthwiseConvWeights {
  at::Tensor weight, bias;  // fp32 [kernel, kernel, channels], and [channels]
                            // or undefined.
  int stride = 1;
  kernels::CudaActivation activation = kernels::CudaActivation::kNone;
};

// A uint8 image [height, width, 3] or [3, height, width], contiguous.
struct ImagePixels {
  const uint8_t* rgb;
  int height, width;
};

// Images on a device, and the parameters for normalising them. Each image is
// padded on the right and at the bottom to height x width.
struct PixelBatch {
  std::vector<ImagePixels> images;
  int height = 0, width = 0;  // At least the largest image's.
  std::array<float, 3> mean{}, std{};
  // An array in the device's memory with one byte for each image. A byte is not
  // 0 if its image has the layout [3, height, width]. When a recorded graph is
  // replayed, it reads the array again, so the layouts may differ from those at
  // recording. If this pointer is null, all images have the layout [height,
  // width, 3].
  const uint8_t* planar = nullptr;
};

// A 3x3 convolution of stride 2 that reads pixels. The weight is [27, out],
// with a row for each tap of each colour, and the bias is [out]. Both are fp32.
struct PixelConvWeights {
  at::Tensor weight, bias;
  kernels::CudaActivation activation = kernels::CudaActivation::kNone;
};

// The operations that CudaImplementation calls. They enqueue work on the
// calling thread's stream and return. An operation whose result is in the CPU's
// memory also waits for this result. Tensors are on the device, in fp32, fp16
// or bf16. model/ops/cpu/ops.h describes the other properties of the arguments.
// Thread-safe.
class DeviceOps {
 public:
  virtual ~DeviceOps() = default;

  // Computes x += add, if `add` is defined, and then y = LayerNorm(x). `add` is
  // contiguous and has as many values as x. `add` and y have the same type. If
  // x is fp32, this type may be any supported type. Otherwise, it must be x's
  // type. If `swap` is true, the first and the last token of each sequence of
  // `length` tokens are exchanged, in y and also in x.
  virtual void LayerNorm(at::Tensor& x, const at::Tensor& add,
                         const at::Tensor& gamma, const at::Tensor& beta,
                         float eps, int64_t length, bool swap,
                         const at::Tensor& y) const = 0;
  // Computes y = LayerNorm(x + add) for x [rows, tokens, channels], without
  // changing x. Writes x + add for tokens [first, first + count) of each row to
  // `kept` [rows, count, channels], contiguous. LayerNorm() describes the other
  // arguments. No tokens are exchanged.
  virtual void LayerNormKeeping(const at::Tensor& x, const at::Tensor& add,
                                const at::Tensor& gamma, const at::Tensor& beta,
                                float eps, int64_t first,
                                const at::Tensor& kept,
                                const at::Tensor& y) const = 0;
  // Runs one or two convolutions, each followed by SiLU. Both have the same
  // number of taps, the same `left` (the number of taps before the token) and
  // the same `length`.
  virtual void DepthwiseConvSilu(absl::Span<const ShortConv> convs, int left,
                                 int64_t length) const = 0;
  // Writes the selective scan of u to y. Each sequence has `length` tokens. The
  // sequences are folded into `rows` rows, which means that each row consists
  // of one or more sequences. See ScanPlanChooser::Plan() for the effect of
  // `rows`.
  virtual void SelectiveScan(const Scan& scan, const at::Tensor& u,
                             const at::Tensor& dt, const at::Tensor& B,
                             const at::Tensor& C, int64_t length, int64_t rows,
                             const at::Tensor& y) const = 0;
  // Scans the maps u [N, H, W, channels] in four directions, see
  // kernels/scan/cross_scan_cuda.h. The parameters in `scan` are [4, channels].
  // dt is [4, pixels, channels], B and C are [pixels, 4], and y is [4, pixels,
  // channels] in fp32. u, dt and y are contiguous. B and C have equal strides.
  virtual void CrossScan(const Scan& scan, const at::Tensor& u,
                         const at::Tensor& dt, const at::Tensor& B,
                         const at::Tensor& C, const at::Tensor& y) const = 0;
  // Computes x = activation(x + bias) in place. x is [rows, channels],
  // contiguous. bias is [channels] in fp32, or undefined.
  virtual void Activate(const at::Tensor& x, const at::Tensor& bias,
                        kernels::CudaActivation activation) const = 0;
  // Computes y += x + bias. The shapes are described at Activate().
  virtual void AddBiased(const at::Tensor& x, const at::Tensor& bias,
                         const at::Tensor& y) const = 0;
  virtual void FillEndsWithMean(const at::Tensor& x) const = 0;
  // Writes the convolution of x [N, channels, H, W] to y [N, channels, ceil(H /
  // stride), ceil(W / stride)], of x's type. Both are channels-last in memory.
  virtual void ConvolveDepthwise(const at::Tensor& x,
                                 const DepthwiseConvWeights& weights,
                                 const at::Tensor& y) const = 0;

  // Writes the normalised images to y [N, 3, H, W], which may have any strides.
  // Writes 0 to the padding.
  virtual void NormalizeImages(const PixelBatch& pixels,
                               const at::Tensor& y) const = 0;
  // Writes the convolution of the normalised images to y [N, out, ceil(H / 2),
  // ceil(W / 2)], channels-last in memory.
  virtual void ConvolvePixels(const PixelBatch& pixels,
                              const PixelConvWeights& weights,
                              const at::Tensor& y) const = 0;

  // WindowPartition() copies maps [N, H, W, C] to windows [N * windows, height
  // * width, C], and WindowReverse() copies windows back. The last axis of the
  // maps must be contiguous. The windows must be contiguous. Unless `ends` is
  // kNone, a window has two additional tokens, one at its start and one at its
  // end. The windows have the map's type or fp32.
  virtual void WindowPartition(const at::Tensor& map, const WindowGrid& grid,
                               WindowEnds ends,
                               const at::Tensor& windows) const = 0;
  virtual void WindowReverse(const at::Tensor& windows, const WindowGrid& grid,
                             const at::Tensor& map) const = 0;

  virtual at::Tensor RoiAlign(const std::vector<at::Tensor>& maps,
                              const std::vector<int>& strides,
                              const at::Tensor& rois, int size,
                              float finest_scale) const = 0;
  virtual at::Tensor Nms(const at::Tensor& boxes, const at::Tensor& scores,
                         const at::Tensor& groups, float iou_threshold,
                         int64_t max_kept) const = 0;
  // ---- Operations of the GPU's libraries ----

  // Returns x W^T + bias, [rows, out]. x is [rows, in], W is [out, in], and
  // bias is [out] or undefined. All have the same type.
  virtual at::Tensor Linear(const at::Tensor& x, const at::Tensor& W,
                            const at::Tensor& bias) const = 0;
  // Returns Linear(x, W, bias) after GELU in its tanh form.
  virtual at::Tensor LinearGeluTanh(const at::Tensor& x, const at::Tensor& W,
                                    const at::Tensor& bias) const = 0;
  // Computes y += x W^T.
  virtual void AddLinear(const at::Tensor& x, const at::Tensor& W,
                         const at::Tensor& y) const = 0;
  // Returns the convolution of x [N, in, H, W]. It is channels-last in memory.
  virtual at::Tensor Convolve(const at::Tensor& x,
                              const ConvWeights& weights) const = 0;
  // Returns softmax(q k^T / sqrt(d)) v. q is [N, heads, queries, d]. k and v
  // are [N, heads, tokens, d]. All may have any strides.
  virtual at::Tensor Attention(const at::Tensor& q, const at::Tensor& k,
                               const at::Tensor& v) const = 0;

  // Writes the result to host memory.
  virtual void SegmentationArgmax(const at::Tensor& logits, int input_height,
                                  int input_width, bool confidence,
                                  model::Segmentation* out) const = 0;
};

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_DEVICE_OPS_H_
