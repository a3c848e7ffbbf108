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

// A scan's parameters, as kernels/scan/selective_scan.h has them.
struct Scan {
  at::Tensor A;     // [states, channels], negative
  at::Tensor D;     // [channels]
  at::Tensor bias;  // [channels], all of it
  // On a device only, and there it must be set. Not owned.
  const tuning::ScanPlanChooser* chooser = nullptr;
};

// A convolution of x to y, as kernels/sequence/depthwise_conv1d.h has it:
// weight [taps, channels], bias [channels] or undefined.
struct ShortConv {
  at::Tensor x;
  at::Tensor weight, bias;
  at::Tensor y;
};

// How a GPU's library chooses the algorithm of a convolution.
enum class ConvSearch {
  kFixed,    // One whose order of operations is fixed.
  kGuess,    // By the library's rules: for sizes that seldom come again.
  kMeasure,  // By trying all at the first batch of a size, which takes long.
};

// A two-dimensional convolution's weight [out, in / groups, kernel, kernel],
// channels-last in memory, and how it moves.
struct ConvWeights {
  at::Tensor weight;
  int stride = 1;
  int padding = 0;  // Zeros on each side.
  int groups = 1;
  ConvSearch search = ConvSearch::kGuess;
};

// A uint8 image [height, width, 3], dense.
struct ImagePixels {
  const uint8_t* rgb;
  int height, width;
};

// Images on a device, each in the upper left corner of a place of this size,
// and how they are normalised.
struct PixelBatch {
  std::vector<ImagePixels> images;
  int height = 0, width = 0;  // No image is larger.
  std::array<float, 3> mean{}, std{};
};

// A convolution that reads pixels, 3x3 and of stride 2: weight [27, out], a tap
// of a colour a row, and bias [out], both fp32.
struct PixelConvWeights {
  at::Tensor weight, bias;
  kernels::CudaActivation activation = kernels::CudaActivation::kNone;
};

// The operations of model/ops/ops.h by the kernels of a device. They enqueue on
// the calling thread's stream and return, unless they give something on the
// host. Tensors lie on the device and are fp32, fp16 or bf16; otherwise
// arguments are as in model/ops/ops.h. Thread-safe.
class DeviceOps {
 public:
  virtual ~DeviceOps() = default;

  // `add` may be undefined.
  virtual void LayerNorm(at::Tensor& x, const at::Tensor& add,
                         const at::Tensor& gamma, const at::Tensor& beta,
                         int64_t length, bool swap,
                         const at::Tensor& y) const = 0;
  // One or two convolutions alike in taps, left and length.
  virtual void DepthwiseConvSilu(absl::Span<const ShortConv> convs, int left,
                                 int64_t length) const = 0;
  virtual void SelectiveScan(const Scan& scan, const at::Tensor& u,
                             const at::Tensor& dt, const at::Tensor& B,
                             const at::Tensor& C, int64_t length, int64_t rows,
                             const at::Tensor& y) const = 0;
  // x = activation(x + bias) in place: x [rows, channels], contiguous, bias
  // [channels], fp32, or undefined.
  virtual void Activate(const at::Tensor& x, const at::Tensor& bias,
                        kernels::CudaActivation activation) const = 0;
  // y += x + bias, of the same shapes.
  virtual void AddBiased(const at::Tensor& x, const at::Tensor& bias,
                         const at::Tensor& y) const = 0;
  virtual void FillEndsWithMean(const at::Tensor& x) const = 0;

  // Into y [N, 3, H, W] of any strides; 0 beyond an image.
  virtual void NormalizeImages(const PixelBatch& pixels,
                               const at::Tensor& y) const = 0;
  // The same, then a convolution: y [N, out, ceil(H / 2), ceil(W / 2)],
  // channels-last in memory.
  virtual void ConvolvePixels(const PixelBatch& pixels,
                              const PixelConvWeights& weights,
                              const at::Tensor& y) const = 0;

  // Between maps [N, H, W, C], whose last axis is dense, and windows [N *
  // windows, margin + height * width + margin, C], contiguous. The margins are
  // left alone. Windows may be fp32 where maps are not.
  virtual void WindowPartition(const at::Tensor& map, const WindowGrid& grid,
                               int margin, const at::Tensor& windows) const = 0;
  virtual void WindowReverse(const at::Tensor& windows, const WindowGrid& grid,
                             const at::Tensor& map) const = 0;

  virtual at::Tensor RoiAlign(const std::vector<at::Tensor>& maps,
                              const std::vector<int>& strides,
                              const at::Tensor& rois, int size,
                              float finest_scale) const = 0;
  virtual at::Tensor Nms(const at::Tensor& boxes, const at::Tensor& scores,
                         const at::Tensor& groups, float iou_threshold,
                         int64_t max_kept) const = 0;
  // ---- What a GPU's libraries compute ----

  // x W^T + bias: x [rows, in], W [out, in], bias [out] or undefined, all of
  // one type. The result is [rows, out].
  virtual at::Tensor Linear(const at::Tensor& x, const at::Tensor& W,
                            const at::Tensor& bias) const = 0;
  // The same, then GELU in its tanh form.
  virtual at::Tensor LinearGeluTanh(const at::Tensor& x, const at::Tensor& W,
                                    const at::Tensor& bias) const = 0;
  // y += x W^T.
  virtual void AddLinear(const at::Tensor& x, const at::Tensor& W,
                         const at::Tensor& y) const = 0;
  // x [N, in, H, W] through a convolution of these weights; the result is
  // channels-last in memory.
  virtual at::Tensor Convolve(const at::Tensor& x,
                              const ConvWeights& weights) const = 0;
  // softmax(q k^T / sqrt(d)) v: q [N, heads, asking, d], k and v [N, heads,
  // tokens, d], of any strides.
  virtual at::Tensor Attention(const at::Tensor& q, const at::Tensor& k,
                               const at::Tensor& v) const = 0;

  // Fills host memory.
  virtual void SegmentationArgmax(const at::Tensor& logits, int input_height,
                                  int input_width, bool confidence,
                                  model::Segmentation* out) const = 0;
};

// The operations of the device that x lies on; null for the CPU. What a build
// without CUDA, one with it and the tests on the emulator link differs in this
// function.
const DeviceOps* DeviceOpsOf(const at::Tensor& x);

inline bool OnDevice(const at::Tensor& x) { return DeviceOpsOf(x) != nullptr; }

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_DEVICE_OPS_H_
