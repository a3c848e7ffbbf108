#ifndef SFMAMBA_MODEL_HEADS_BOX_HEAD_H_
#define SFMAMBA_MODEL_HEADS_BOX_HEAD_H_

#include <vector>

#include "ATen/core/Tensor.h"
#include "model/config.h"
#include "model/layers/convolution.h"
#include "model/layers/linear.h"
#include "model/ops/implementation.h"
#include "model/weights/state_dict.h"

namespace sfmamba::heads {

// The result of a box head for n regions.
struct BoxOutput {
  at::Tensor logits;  // [n, classes + 1], the background is last
  at::Tensor deltas;  // [n, 4 classes], or [n, 4] if shared
};

// Classifies regions and predicts how to move their boxes. It consists of
// convolutions with BatchNorm and ReLU, hidden linear layers with ReLU, and two
// linear outputs. Source: docs/heads.md, "Box heads". Immutable, so
// thread-safe.
class BoxHead {
 public:
  // Takes "shared_convs", "shared_fcs", "fc_cls" and "fc_reg" from `scope`.
  BoxHead(const model::DetectorConfig& config, int num_classes,
          const weights::StateDict::Scope& scope,
          const ops::Implementation& implementation);

  // `features` is [n, C, S, S], channels-last in memory. The result is fp32.
  BoxOutput Forward(const at::Tensor& features) const;

 private:
  // Returns the result of the convolutions as [n, S * S * C]. Threads divide
  // the regions. Each thread runs a few regions through all convolutions at a
  // time, so that their maps stay in its cache.
  at::Tensor Trunk(const at::Tensor& features) const;

  const ops::Implementation& implementation_;
  int num_classes_;
  std::vector<layers::Convolution> convs_;
  std::vector<layers::Linear> fcs_;
  layers::Linear output_;  // Computes logits and deltas.
};

}  // namespace sfmamba::heads

#endif  // SFMAMBA_MODEL_HEADS_BOX_HEAD_H_
