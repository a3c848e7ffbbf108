#ifndef SFMAMBA_MODEL_OPS_SEQUENCE_OPS_H_
#define SFMAMBA_MODEL_OPS_SEQUENCE_OPS_H_

#include <cstdint>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/types/span.h"
#include "model/ops/layer_norm_op.h"
#include "model/ops/weight_transforms.h"

namespace sfmamba::ops {

// Operators along sequences. Tensors are [rows, tokens, channels] with a
// contiguous last axis. A row consists of one or more sequences, and each
// `length` consecutive tokens of a row form a sequence. All operators are
// immutable, so thread-safe.

// The one or two depthwise convolutions of a mixer. If there are two, they have
// the same number of taps.
struct ShortConvolutionParameters {
  struct Part {
    at::Tensor weight;  // [taps, channels]
    at::Tensor bias;    // [channels] or undefined.
  };
  std::vector<Part> parts;
  int left = 1;  // Taps before the token.
};

// Depthwise convolutions along each sequence, followed by SiLU.
class ShortConvolutionOp {
 public:
  struct Step {
    at::Tensor x, y;  // y is written.
  };

  virtual ~ShortConvolutionOp() = default;

  // Convolves each step's x into its y. There is a step for each part.
  virtual void Forward(absl::Span<const Step> steps, int64_t length) const = 0;
};

// The inputs of a scan.
struct ScanInputs {
  at::Tensor u,
      dt;           // [rows, tokens, channels]; dt is before bias and softplus.
  at::Tensor B, C;  // [rows, tokens, states]
};

// Projections that compute a scan's inputs from u.
struct ScanProjectionParameters {
  Weights x_proj;   // [rank + 2 * states, channels], without bias.
  Weights dt_proj;  // [channels, rank], without bias.
  int states = 0;

  int64_t rank() const { return dt_proj.weight.size(1); }
  int64_t channels() const { return dt_proj.weight.size(0); }
};

class ScanProjectionOp {
 public:
  virtual ~ScanProjectionOp() = default;

  // Returns u together with dt, B and C. u must be contiguous.
  virtual ScanInputs Forward(const at::Tensor& u) const = 0;
};

struct ScanParameters {
  at::Tensor A;     // [states, channels], negative.
  at::Tensor D;     // [channels]
  at::Tensor bias;  // [channels], added to dt before softplus.
};

// The selective scan, see kernels/scan/selective_scan.h. In a folded batch,
// each row consists of several sequences.
class SelectiveScanOp {
 public:
  virtual ~SelectiveScanOp() = default;

  // Writes the result of the scan to y. B and C must have the same stride
  // between tokens.
  virtual void Forward(const ScanInputs& inputs, int64_t length,
                       const at::Tensor& y) const = 0;
};

// The parameters of four scans over a map. Each scan has its own parameters and
// one state per channel. Scan 0 visits the pixels row by row, and scan 1 column
// by column. Scans 2 and 3 visit them in the reverse order of scans 0 and 1.
// Source: VMamba (arXiv 2401.10166), 4.2, "2D-Selective-Scan".
struct CrossScanParameters {
  at::Tensor x_proj;         // [4, rank + 2, channels]
  at::Tensor dt_proj;        // [4, channels, rank]
  at::Tensor A;              // [4, channels], negative.
  at::Tensor D, bias;        // [4, channels]; `bias` is added to dt.
  LayerNormParameters norm;  // Normalises the sum of the four scans.

  int64_t rank() const { return dt_proj.size(2); }
};

class CrossScanOp {
 public:
  virtual ~CrossScanOp() = default;

  // Returns the normalised sum of the four scans of u [N, H, W, channels],
  // which must be contiguous. The result has u's shape and a type that linear
  // operators read.
  virtual at::Tensor Forward(const at::Tensor& u) const = 0;
};

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_SEQUENCE_OPS_H_
