#ifndef SFMAMBA_MODEL_PREDICTION_OPTIONS_H_
#define SFMAMBA_MODEL_PREDICTION_OPTIONS_H_

#include <optional>
#include <vector>

namespace sfmamba::model {

// What is asked of a detector for one image; unset: the model's configuration.
struct DetectionOptions {
  std::optional<float> score_threshold;    // Kept: greater.
  std::optional<float> nms_iou_threshold;  // Suppressed: greater.
  int max_detections = 0;                  // 0: the configuration's.
  std::vector<int> classes;                // Kept; empty: all. Sorted.
  bool class_agnostic_nms = false;         // Boxes of all classes compete.
  bool masks = false;  // Also compute masks, if the model has any.
};

// What is asked of a segmenter for one image.
struct SegmentationOptions {
  bool original_size = true;  // False: the map is of the network input's size.
  bool confidence = false;    // Also the winner's probability.
};

}  // namespace sfmamba::model

#endif  // SFMAMBA_MODEL_PREDICTION_OPTIONS_H_
