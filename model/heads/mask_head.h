#ifndef SFMAMBA_MODEL_HEADS_MASK_HEAD_H_
#define SFMAMBA_MODEL_HEADS_MASK_HEAD_H_

#include <vector>

#include "ATen/core/Tensor.h"
#include "model/config.h"
#include "model/layers/convolution.h"
#include "model/layers/linear.h"
#include "model/ops/implementation.h"
#include "model/weights/state_dict.h"

namespace sfmamba::heads {

// Computes the masks of regions. It consists of convolutions with ReLU, a
// transposed convolution (2x2, stride 2) with ReLU, and a linear output for
// each class. Source: Mask R-CNN (arXiv 1703.06870), 3; docs/heads.md, "Masks".
// Immutable, so thread-safe.
class MaskHead {
 public:
  // Takes "convs", "upsample" and "conv_logits" from `scope`.
  MaskHead(const model::DetectorConfig& config, int num_classes,
           const weights::StateDict::Scope& scope,
           const ops::Implementation& implementation);

  // Returns mask logits, fp32 [n, 2 S, 2 S], of one class for each region.
  // `labels`, int64 [n], are these classes. `features` is [n, C, S, S],
  // channels-last in memory.
  at::Tensor Forward(const at::Tensor& features,
                     const at::Tensor& labels) const;

 private:
  // Does the work of Forward() for a few regions, on the calling thread.
  at::Tensor ForwardFew(const at::Tensor& features,
                        const at::Tensor& labels) const;

  const ops::Implementation& implementation_;
  std::vector<layers::Convolution> convs_;
  layers::Linear upsample_;  // Maps a pixel [C] to four, [2, 2, C].
  // The weight is [classes, C], or [1, C] if all classes share the masks. Both
  // tensors are fp32.
  ops::Weights logits_;
};

}  // namespace sfmamba::heads

#endif  // SFMAMBA_MODEL_HEADS_MASK_HEAD_H_
