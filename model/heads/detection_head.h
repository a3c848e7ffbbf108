#ifndef SFMAMBA_MODEL_HEADS_DETECTION_HEAD_H_
#define SFMAMBA_MODEL_HEADS_DETECTION_HEAD_H_

#include <optional>
#include <vector>

#include "model/heads/feature_pyramid.h"
#include "model/heads/head.h"
#include "model/heads/multiclass_nms.h"
#include "model/heads/region_proposals.h"
#include "model/heads/roi_head.h"

namespace sfmamba::heads {

// The head of Cascade Mask R-CNN, Mask R-CNN and Faster R-CNN. It returns
// boxes, classes and masks in pixels of the picture. Source: docs/heads.md,
// "The cascade".
class DetectionHead : public Head {
 public:
  // Takes "neck", "rpn_head" and "roi_head" from `scope`. `in_channels` are the
  // channels of the backbone's maps.
  DetectionHead(const model::DetectorConfig& config, int num_classes,
                const std::vector<int>& in_channels,
                const weights::StateDict::Scope& scope,
                const ops::Implementation& implementation);

  // Processes images one by one. This limits the memory of a batch, and an
  // image has the same result bit for bit in every batch.
  std::vector<model::Result> Forward(
      const layers::Features& features,
      absl::Span<const ImageInfo> images) const override;

 private:
  struct BoxPredictions {
    at::Tensor boxes;          // [n, 4 classes] or [n, 4], input pixels
    at::Tensor probabilities;  // [n, classes + 1]
  };

  // Detects the objects of one image. `features` belong to this image only.
  model::Detections Detect(const layers::Features& features,
                           const ImageInfo& image) const;

  // Returns the predictions of the box stages for the regions `rois` [n, 4].
  // There must be at least one region. Returns nullopt if a prediction is not
  // finite.
  std::optional<BoxPredictions> PredictBoxes(const layers::Features& pyramid,
                                             at::Tensor rois,
                                             const ImageInfo& image) const;

  model::DetectorConfig config_;
  FeaturePyramid neck_;
  RegionProposals rpn_;
  RoiHead roi_;
};

}  // namespace sfmamba::heads

#endif  // SFMAMBA_MODEL_HEADS_DETECTION_HEAD_H_
