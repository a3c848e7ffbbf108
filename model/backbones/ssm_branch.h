#ifndef SFMAMBA_MODEL_BACKBONES_SSM_BRANCH_H_
#define SFMAMBA_MODEL_BACKBONES_SSM_BRANCH_H_

#include <memory>

#include "ATen/core/Tensor.h"
#include "absl/strings/string_view.h"
#include "model/layers/short_convolution.h"
#include "model/ops/implementation.h"
#include "model/weights/state_dict.h"

namespace sfmamba::backbones {

// Returns x [rows, tokens, channels] with the tokens of each sequence in
// reverse order, in new memory. Each `length` consecutive tokens form a
// sequence.
at::Tensor Reversed(const at::Tensor& x, int64_t length);

// The scan of a mixer in one direction. Projections of u compute dt, B and C.
// Then the selective scan computes y. Immutable, so thread-safe. Source: Mamba
// (arXiv 2312.00752), 3.4.
class SsmBranch {
 public:
  struct Shape {
    int channels;
    int rank;              // The rank of dt's projection.
    int states;            // States per channel.
    double dt_bias_scale;  // Multiplies dt's bias.
    // The number of channels that are scanned backward. They are the last
    // channels. Only an ablation uses this.
    int reversed_scans = 0;
  };

  // `suffix` ("_b" for a backward branch) is appended to the names of all
  // layers and parameters.
  SsmBranch(const weights::StateDict::Scope& scope, absl::string_view suffix,
            const Shape& shape, const ops::Implementation& implementation);

  // Computes y from u. Both are [rows, tokens, channels]. u must be contiguous.
  // The last axis of y must be contiguous. Each `length` consecutive tokens
  // form a sequence.
  void Forward(const at::Tensor& u, int64_t length, const at::Tensor& y) const;

 private:
  Shape shape_;
  std::unique_ptr<const ops::ScanProjectionOp> projection_;
  // scan_ scans the forward channels, and reversed_scan_ the last channels.
  // reversed_scan_ is null if no channels are scanned backward.
  std::unique_ptr<const ops::SelectiveScanOp> scan_, reversed_scan_;
};

// An SsmBranch with its own short convolution, which computes u from x.
class ConvolvedSsmBranch {
 public:
  // `conv` is the convolution's name. `suffix` is appended to this name, too.
  ConvolvedSsmBranch(const weights::StateDict::Scope& scope,
                     absl::string_view conv,
                     const layers::ShortConvolution::Shape& conv_shape,
                     absl::string_view suffix, const SsmBranch::Shape& shape,
                     const ops::Implementation& implementation);

  // Computes y from x. Both have the shapes of SsmBranch::Forward().
  void Forward(const at::Tensor& x, int64_t length, const at::Tensor& y) const;
  // Reverses the sequences, runs Forward(), and reverses the result. Then adds
  // it to y.
  void AddBackward(const at::Tensor& x, int64_t length,
                   const at::Tensor& y) const;

 private:
  layers::ShortConvolution conv_;
  SsmBranch branch_;
};

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_MODEL_BACKBONES_SSM_BRANCH_H_
