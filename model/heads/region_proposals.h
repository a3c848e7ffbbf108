#ifndef SFMAMBA_MODEL_HEADS_REGION_PROPOSALS_H_
#define SFMAMBA_MODEL_HEADS_REGION_PROPOSALS_H_

#include <vector>

#include "ATen/core/Tensor.h"
#include "model/config.h"
#include "model/heads/anchors.h"
#include "model/layers/convolution.h"
#include "model/layers/features.h"
#include "model/ops/implementation.h"
#include "model/weights/state_dict.h"

namespace sfmamba::heads {

// Boxes of an image that may contain an object, in descending order of scores.
// The tensors are on the CPU.
struct Proposals {
  at::Tensor boxes;   // [k, 4], in pixels of the input
  at::Tensor scores;  // [k]
};

// The region proposal network. It scores and moves the anchors of each level of
// a pyramid. Then it selects the best boxes that do not overlap too much.
// Source: Faster R-CNN (arXiv 1506.01497), 3; docs/heads.md, "Anchors and
// proposals". Immutable, so thread-safe.
class RegionProposals {
 public:
  // Takes "rpn_conv", "rpn_cls" and "rpn_reg" from `scope`.
  RegionProposals(const model::DetectorConfig& config,
                  const weights::StateDict::Scope& scope,
                  const ops::Implementation& implementation);

  // Returns a tensor [H, W, 5 A], fp32 and contiguous, for the map [1, C, H, W]
  // of each level. A is the number of anchors per pixel. The A logits of a
  // pixel come first, followed by four deltas for each anchor.
  std::vector<at::Tensor> Forward(const layers::Features& pyramid) const;

  // Returns the proposals of an image of height x width pixels. This size does
  // not include the padding. `levels` is the result of Forward() and must be
  // finite.
  Proposals Select(const std::vector<at::Tensor>& levels, int height,
                   int width) const;

 private:
  const ops::Implementation& implementation_;
  model::DetectorConfig config_;
  layers::Convolution hidden_;
  layers::Convolution output_;  // Computes logits and deltas.
};

}  // namespace sfmamba::heads

#endif  // SFMAMBA_MODEL_HEADS_REGION_PROPOSALS_H_
