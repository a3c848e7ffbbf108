#ifndef SFMAMBA_MODEL_HEADS_MASK_HEAD_H_
#define SFMAMBA_MODEL_HEADS_MASK_HEAD_H_

#include <vector>

#include "ATen/core/Tensor.h"
#include "model/config.h"
#include "model/layers/convolution.h"
#include "model/layers/layer_options.h"
#include "model/layers/linear.h"
#include "model/weights/state_dict.h"

namespace sfmamba::heads {

// The mask of what a region shows: convolutions with ReLU, a transposed
// convolution (2x2, stride 2) with ReLU, a linear output a class. Source: Mask
// R-CNN (arXiv 1703.06870), 3; docs/heads.md, "Masks". Immutable, so
// thread-safe.
class MaskHead {
 public:
  // Takes "convs", "upsample" and "conv_logits" from `scope`.
  MaskHead(const model::DetectorConfig& config, int num_classes,
           const weights::StateDict::Scope& scope,
           const layers::LayerOptions& options);

  // features [n, C, S, S], channels-last in memory, and classes, int64 [n]: the
  // logits of each region's own class, fp32 [n, 2 S, 2 S].
  at::Tensor Forward(const at::Tensor& features,
                     const at::Tensor& labels) const;

 private:
  // The same of a few regions, on the calling thread.
  at::Tensor ForwardFew(const at::Tensor& features,
                        const at::Tensor& labels) const;

  std::vector<layers::Convolution> convs_;
  layers::Linear upsample_;  // Pixel to pixels: [C] to [2, 2, C].
  layers::Weights
      logits_;  // [classes or 1, C], fp32; one: for all classes alike.
};

}  // namespace sfmamba::heads

#endif  // SFMAMBA_MODEL_HEADS_MASK_HEAD_H_
