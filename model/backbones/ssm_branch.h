#ifndef SFMAMBA_MODEL_BACKBONES_SSM_BRANCH_H_
#define SFMAMBA_MODEL_BACKBONES_SSM_BRANCH_H_

#include <memory>

#include "ATen/core/Tensor.h"
#include "absl/strings/string_view.h"
#include "model/layers/short_convolution.h"
#include "model/ops/implementation.h"
#include "model/weights/state_dict.h"

namespace sfmamba::backbones {

// Returns x [rows, tokens, channels] with each `length` tokens in reverse
// order, in new memory.
at::Tensor Reversed(const at::Tensor& x, int64_t length);

// A mixer's scan in one direction: projections of u compute dt, B and C, and
// the selective scan computes y. Immutable, so thread-safe. Source: Mamba
// (arXiv 2312.00752), 3.4.
class SsmBranch {
 public:
  struct Shape {
    int channels;
    int rank;              // The rank of dt's projection.
    int states;            // States per channel.
    double dt_bias_scale;  // The factor of dt's bias.
    // The last channels, of which there are this many, are scanned backward.
    // This is an ablation.
    int reversed_scans = 0;
  };

  // `suffix` ("_b" for a backward branch) is appended to the names of all
  // layers and parameters.
  SsmBranch(const weights::StateDict::Scope& scope, absl::string_view suffix,
            const Shape& shape, const ops::Implementation& implementation);

  // Computes y from u, which is contiguous. Both are [rows, tokens, channels]
  // with a contiguous last axis. Each `length` consecutive tokens are a
  // sequence.
  void Forward(const at::Tensor& u, int64_t length, const at::Tensor& y) const;

 private:
  Shape shape_;
  std::unique_ptr<const ops::ScanProjectionOp> projection_;
  // The scans of the forward channels and of the last reversed_scans channels.
  // The latter is null if there are none.
  std::unique_ptr<const ops::SelectiveScanOp> scan_, reversed_scan_;
};

// An SsmBranch with its own short convolution, which computes u from x.
class ConvolvedSsmBranch {
 public:
  // `conv` is the convolution's name, to which `suffix` is appended too.
  ConvolvedSsmBranch(const weights::StateDict::Scope& scope,
                     absl::string_view conv,
                     const layers::ShortConvolution::Shape& conv_shape,
                     absl::string_view suffix, const SsmBranch::Shape& shape,
                     const ops::Implementation& implementation);

  // Computes y from x. Shapes are as for SsmBranch::Forward().
  void Forward(const at::Tensor& x, int64_t length, const at::Tensor& y) const;
  // Reverses the sequences, runs Forward(), reverses the result and adds it to
  // y.
  void AddBackward(const at::Tensor& x, int64_t length,
                   const at::Tensor& y) const;

 private:
  layers::ShortConvolution conv_;
  SsmBranch branch_;
};

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_MODEL_BACKBONES_SSM_BRANCH_H_
