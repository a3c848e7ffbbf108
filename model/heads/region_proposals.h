#ifndef SFMAMBA_MODEL_HEADS_REGION_PROPOSALS_H_
#define SFMAMBA_MODEL_HEADS_REGION_PROPOSALS_H_

#include <vector>

#include "ATen/core/Tensor.h"
#include "model/config.h"
#include "model/heads/anchors.h"
#include "model/layers/convolution.h"
#include "model/layers/features.h"
#include "model/layers/layer_options.h"
#include "model/weights/state_dict.h"

namespace sfmamba::heads {

// Boxes of an image that may hold something, the best first; in the CPU's
// memory.
struct Proposals {
  at::Tensor boxes;   // [k, 4], pixels of the network's input
  at::Tensor scores;  // [k]
};

// The region proposal network: scores and moves the anchors of every level of a
// pyramid and keeps the best of what does not overlap. Source: Faster R-CNN
// (arXiv 1506.01497), 3; docs/heads.md, "Anchors and proposals". Immutable, so
// thread-safe.
class RegionProposals {
 public:
  // Takes "rpn_conv", "rpn_cls" and "rpn_reg" from `scope`.
  RegionProposals(const model::DetectorConfig& config,
                  const weights::StateDict::Scope& scope,
                  const layers::LayerOptions& options);

  // Of each level's map [1, C, H, W]: [H, W, 5 A], fp32 and
  // contiguous: a pixel's A logits, then the four deltas of each of its A
  // anchors.
  std::vector<at::Tensor> Forward(const layers::Features& pyramid) const;

  // The proposals of an image of height x width, without its padding. `levels`
  // is what Forward() gave, finite; what overlaps is found where it lies.
  Proposals Select(const std::vector<at::Tensor>& levels, int height,
                   int width) const;

 private:
  model::DetectorConfig config_;
  layers::Convolution hidden_;
  layers::Convolution output_;  // Logits and deltas.
};

}  // namespace sfmamba::heads

#endif  // SFMAMBA_MODEL_HEADS_REGION_PROPOSALS_H_
