#ifndef SFMAMBA_MODEL_BACKBONES_SSM_BRANCH_H_
#define SFMAMBA_MODEL_BACKBONES_SSM_BRANCH_H_

#include <optional>

#include "ATen/core/Tensor.h"
#include "absl/strings/string_view.h"
#include "model/layers/layer_options.h"
#include "model/layers/linear.h"
#include "model/layers/short_convolution.h"
#include "model/ops/ops.h"
#include "model/weights/state_dict.h"

namespace sfmamba::backbones {

// x [rows, tokens, channels] with each `length` tokens in reverse order, in
// memory of its own.
at::Tensor Reversed(const at::Tensor& x, int64_t length);

// One way through a mixer's sequences: a short convolution gives u, projections
// of u give dt, B and C, the selective scan gives y. Immutable, so thread-safe.
// Source: Mamba (arXiv 2312.00752), 3.4.
class SsmBranch {
 public:
  struct Shape {
    layers::ShortConvolution::Shape conv;
    int rank;                // Of the projection that gives dt.
    int states;              // Of each channel.
    double dt_bias_scale;    // What dt's bias is multiplied by.
    int reversed_scans = 0;  // So many channels, the last ones, are scanned
                             // from the ends of the sequences: an ablation.
  };

  // The convolution is named `conv`; `suffix` ("_b" for a backward path) ends
  // the names of all parameters.
  SsmBranch(const weights::StateDict::Scope& scope, absl::string_view conv,
            absl::string_view suffix, const Shape& shape,
            const layers::LayerOptions& options);

  // x to y, both [rows, tokens, channels], their last axis dense; `length`
  // tokens in a row are a sequence. y is written.
  void Forward(const at::Tensor& x, int64_t length, at::Tensor y) const;
  // The same in two steps: x through convolution(), then from u on.
  const layers::ShortConvolution& convolution() const { return conv_; }
  void ForwardFrom(const at::Tensor& u, int64_t length, at::Tensor y) const;
  // Adds to y what Forward says of the sequences read from their ends.
  void AddBackward(const at::Tensor& x, int64_t length, at::Tensor y) const;

 private:
  // What the scan reads, each [rows, tokens, ...].
  struct Inputs {
    at::Tensor u, dt, B, C;
  };
  Inputs Project(const at::Tensor& u) const;
  void RunScan(const ops::Scan& scan, const Inputs& inputs, int64_t length,
               at::Tensor y) const;

  bool fuse_;
  Shape shape_;
  layers::ShortConvolution conv_;
  // u to (dt before its own projection | B | C), and that projection; or, where
  // it is absent, u to (dt | B | C) at once.
  std::optional<layers::Linear> x_proj_, dt_proj_;
  ops::Scan scan_;           // Of all channels but the last reversed_scans,
  ops::Scan reversed_scan_;  // and of these.
};

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_MODEL_BACKBONES_SSM_BRANCH_H_
