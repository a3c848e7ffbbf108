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

// The heads for regions of an image. There is a box head for each stage of the
// cascade. If the model has masks, there is also a mask head for each stage.
// Regions are [n, 4], in pixels of the network's input. The regions, their
// labels and the results are on the CPU, even if the pyramid is on a GPU.
// Source: Cascade R-CNN (arXiv 1712.00726), 4; docs/heads.md, "The cascade".
// Immutable, so thread-safe.
class RoiHead {
 public:
  // Takes the heads from `scope`. Their names are "bbox_head" and "mask_head".
  // If there are several stages, the name is followed by the stage's number.
  RoiHead(const model::DetectorConfig& config, int num_classes,
          const weights::StateDict::Scope& scope,
          const ops::Implementation& implementation);

  int stages() const { return box_heads_.size(); }

  // Returns the result of box stage `stage` for the regions. `pyramid` is
  // FeaturePyramid's result for one image.
  BoxOutput ForwardBoxes(int stage, const layers::Features& pyramid,
                         const at::Tensor& rois) const;

  // Returns the mask logits [n, S, S] of each stage. `labels`, int64 [n], are
  // the classes for which the masks are computed.
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
