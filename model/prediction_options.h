#ifndef SFMAMBA_MODEL_PREDICTION_OPTIONS_H_
#define SFMAMBA_MODEL_PREDICTION_OPTIONS_H_

#include <optional>
#include <variant>
#include <vector>

namespace sfmamba::model {

// A request's options for the classification of one image.
struct ClassificationOptions {
  bool heat_map = false;     // Compute the HeatMap of the best of `classes`.
  std::vector<int> classes;  // Empty: all.
  bool embedding = true;     // Return the embedding.
};

// A request's options for detection in one image. Unset values are those of the
// model's configuration.
struct DetectionOptions {
  // Detections with a greater score are kept.
  std::optional<float> score_threshold;
  // Detections with a greater IoU with a better one are suppressed.
  std::optional<float> nms_iou_threshold;
  int max_detections = 0;           // 0 means the configuration's.
  std::vector<int> classes;         // The classes to keep, sorted; empty: all.
  bool class_agnostic_nms = false;  // Suppress across classes.
  bool masks = false;               // Compute masks, if the model has any.
};

// A request's options for the segmentation of one image.
struct SegmentationOptions {
  // Whether the result has the picture's size or the network input's.
  bool original_size = true;
  bool confidence = false;  // Compute the label's probability for each pixel.
  // The result is the head's logits, at a quarter of the input's size, and no
  // class map.
  bool logits = false;
};

// What a request asks of its model's head for one image: the options of the
// model's task. Unset: the defaults.
using PredictionOptions = std::variant<std::monostate, ClassificationOptions,
                                       DetectionOptions, SegmentationOptions>;

// The options of one task, or its defaults if they are another's or unset.
template <typename Options>
Options OptionsOf(const PredictionOptions& options) {
  const Options* const own = std::get_if<Options>(&options);
  return own == nullptr ? Options() : *own;
}

}  // namespace sfmamba::model

#endif  // SFMAMBA_MODEL_PREDICTION_OPTIONS_H_
