#include "model/heads/head.h"

#include "model/heads/classification_head.h"
#include "model/heads/detection_head.h"
#include "model/heads/segmentation_head.h"

namespace sfmamba::heads {

std::unique_ptr<Head> MakeHead(const model::ModelConfig& config,
                               const weights::StateDict::Scope& scope,
                               const ops::Implementation& implementation) {
  if (config.task == model::VisionTask::kClassification) {
    return std::make_unique<ClassificationHead>(config, scope, implementation);
  }
  std::vector<int> in_channels;
  for (int stage = 0; stage < 4; ++stage) {
    in_channels.push_back(config.backbone.width(stage));
  }
  if (config.task == model::VisionTask::kDetection) {
    return std::make_unique<DetectionHead>(config.detector, config.num_classes,
                                           in_channels, scope, implementation);
  }
  return std::make_unique<SegmentationHead>(
      in_channels, config.segmentation_channels, config.num_classes, scope,
      implementation);
}

}  // namespace sfmamba::heads
