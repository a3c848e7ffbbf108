#ifndef SFMAMBA_MODEL_HEADS_ROI_HEAD_H_
#define SFMAMBA_MODEL_HEADS_ROI_HEAD_H_

#include <vector>

#include "ATen/core/Tensor.h"
#include "model/config.h"
#include "model/heads/box_head.h"
#include "model/heads/mask_head.h"
#include "model/layers/features.h"
#include "model/layers/layer_options.h"
#include "model/weights/state_dict.h"

namespace sfmamba::heads {

// What a detector does with regions of an image: one box head a stage of the
// cascade, and as many mask heads if there are masks. Regions are [n, 4],
// pixels of the network's input. Source: Cascade R-CNN (arXiv 1712.00726), 4;
// docs/heads.md, "The cascade". Regions and labels come from the CPU's memory
// and answers lie there, wherever the pyramid lies. Immutable, so thread-safe.
class RoiHead {
 public:
  // Takes "bbox_head" and "mask_head", each with the stage's number if there
  // are several, from `scope`.
  RoiHead(const model::DetectorConfig& config, int num_classes,
          const weights::StateDict::Scope& scope,
          const layers::LayerOptions& options);

  int stages() const { return box_heads_.size(); }

  // What stage `stage` says of the regions. `pyramid` is of one image, as
  // FeaturePyramid gives it.
  BoxOutput ForwardBoxes(int stage, const layers::Features& pyramid,
                         const at::Tensor& rois) const;

  // Each region's mask for its class, labels int64 [n]: the logits of each
  // stage, [n, S, S].
  std::vector<at::Tensor> ForwardMasks(const layers::Features& pyramid,
                                       const at::Tensor& rois,
                                       const at::Tensor& labels) const;

 private:
  // The regions' content, [n, C, size, size].
  at::Tensor Extract(const layers::Features& pyramid, const at::Tensor& rois,
                     int size) const;

  model::DetectorConfig config_;
  std::vector<BoxHead> box_heads_;
  std::vector<MaskHead> mask_heads_;
};

}  // namespace sfmamba::heads

#endif  // SFMAMBA_MODEL_HEADS_ROI_HEAD_H_
