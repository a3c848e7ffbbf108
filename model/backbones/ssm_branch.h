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

// Returns x [rows, tokens, channels] with each `length` tokens in reverse
// order, in new memory.
at::Tensor Reversed(const at::Tensor& x, int64_t length);

// A mixer's scan in one direction. A short convolution computes u, projections
// of u compute dt, B and C, and the selective scan computes y. Immutable, so
// thread-safe. Source: Mamba (arXiv 2312.00752), 3.4.
class SsmBranch {
 public:
  struct Shape {
    layers::ShortConvolution::Shape conv;
    int rank;              // The rank of dt's projection.
    int states;            // States per channel.
    double dt_bias_scale;  // The factor of dt's bias.
    // The number of channels, at the end, that are scanned backward. This is an
    // ablation.
    int reversed_scans = 0;
  };

  // `conv` is the convolution's name. `suffix` ("_b" for a backward branch) is
  // appended to the names of all layers and parameters.
  SsmBranch(const weights::StateDict::Scope& scope, absl::string_view conv,
            absl::string_view suffix, const Shape& shape,
            const layers::LayerOptions& options);

  // Computes y from x. Both are [rows, tokens, channels] with a contiguous last
  // axis. Each `length` consecutive tokens are a sequence.
  void Forward(const at::Tensor& x, int64_t length, at::Tensor y) const;
  // The two steps of Forward(): convolution() computes u from x, ForwardFrom()
  // computes y from u.
  const layers::ShortConvolution& convolution() const { return conv_; }
  void ForwardFrom(const at::Tensor& u, int64_t length, at::Tensor y) const;
  // Adds to y the result of Forward() on the reversed sequences, reversed back.
  void AddBackward(const at::Tensor& x, int64_t length, at::Tensor y) const;

 private:
  // The scan's inputs, each [rows, tokens, ...].
  struct Inputs {
    at::Tensor u, dt, B, C;
  };
  Inputs Project(const at::Tensor& u) const;
  void RunScan(const ops::Scan& scan, const Inputs& inputs, int64_t length,
               at::Tensor y) const;

  bool fuse_;
  Shape shape_;
  layers::ShortConvolution conv_;
  // x_proj_ computes (low-rank dt | B | C) from u, and dt_proj_ expands dt. If
  // dt_proj_ is empty, x_proj_ computes (dt | B | C) directly.
  std::optional<layers::Linear> x_proj_, dt_proj_;
  // The scans of the forward channels and of the last reversed_scans channels.
  ops::Scan scan_;
  ops::Scan reversed_scan_;
};

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_MODEL_BACKBONES_SSM_BRANCH_H_
