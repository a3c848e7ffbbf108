#ifndef SFMAMBA_MODEL_HEADS_ROI_HEAD_H_
#define SFMAMBA_MODEL_HEADS_ROI_HEAD_H_

#include <vector>

#include "ATen/core/Tensor.h"
#include "model/config.h"
#include "model/heads/box_head.h"
#include "model/heads/mask_head.h"
#include "model/layers/features.h"
#include "model/ops/implementation.h"
#include "model/weights/state_dict.h"

namespace sfmamba::heads {

// The heads for regions of an image: a box head for each stage of the cascade
// and, if the model has masks, as many mask heads. Regions are [n, 4] in
// pixels of the network's input. Source: Cascade R-CNN (arXiv 1712.00726), 4;
// docs/heads.md, "The cascade". Regions and labels come from the CPU and
// results are copied to it, wherever the pyramid is. Immutable, so thread-safe.
class RoiHead {
 public:
  // Takes "bbox_head" and "mask_head" from `scope`, followed by the stage's
  // number if there are several stages.
  RoiHead(const model::DetectorConfig& config, int num_classes,
          const weights::StateDict::Scope& scope,
          const ops::Implementation& implementation);

  int stages() const { return box_heads_.size(); }

  // Returns the result of stage `stage` for the regions. `pyramid` is
  // FeaturePyramid's result for one image.
  BoxOutput ForwardBoxes(int stage, const layers::Features& pyramid,
                         const at::Tensor& rois) const;

  // Returns the mask logits of each stage, [n, S, S]. They are the logits of
  // the regions' classes, which are `labels`, int64 [n].
  std::vector<at::Tensor> ForwardMasks(const layers::Features& pyramid,
                                       const at::Tensor& rois,
                                       const at::Tensor& labels) const;

 private:
  // Returns the regions' features, [n, C, size, size].
  at::Tensor Extract(const layers::Features& pyramid, const at::Tensor& rois,
                     int size) const;

  const ops::Implementation& implementation_;
  model::DetectorConfig config_;
  std::vector<BoxHead> box_heads_;
  std::vector<MaskHead> mask_heads_;
};

}  // namespace sfmamba::heads

#endif  // SFMAMBA_MODEL_HEADS_ROI_HEAD_H_
