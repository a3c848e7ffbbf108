#ifndef SFMAMBA_MODEL_PREDICTION_OPTIONS_H_
#define SFMAMBA_MODEL_PREDICTION_OPTIONS_H_

#include <optional>
#include <variant>
#include <vector>

namespace sfmamba::model {

// A request's options for the classification of one image.
struct ClassificationOptions {
  bool heat_map = false;     // Compute a heat map.
  std::vector<int> classes;  // The classes for it. Empty: all.
  bool embedding = true;     // Return the embedding.
};

// A request's options for detection in one image. For unset options, the values
// of the model's configuration are used.
struct DetectionOptions {
  // Only detections with a greater score are returned.
  std::optional<float> score_threshold;
  // A detection is suppressed if its IoU with a better one is greater than
  // this.
  std::optional<float> nms_iou_threshold;
  int max_detections = 0;           // 0: the configuration's value.
  std::vector<int> classes;         // The classes to keep, sorted; empty: all.
  bool class_agnostic_nms = false;  // Suppress across classes.
  bool masks = false;               // Compute masks, if the model has any.
};

// A request's options for the segmentation of one image.
struct SegmentationOptions {
  // Whether the result has the picture's size. If false, it has the size of the
  // network's input.
  bool original_size = true;
  bool confidence = false;  // Compute the label's probability for each pixel.
  // Whether the result is the head's logits instead of a class map. Logits have
  // a quarter of the input's height and width.
  bool logits = false;
};

// A request's options for one image, which depend on the model's task.
// std::monostate means the task's defaults.
using PredictionOptions = std::variant<std::monostate, ClassificationOptions,
                                       DetectionOptions, SegmentationOptions>;

// Returns the options if their type is `Options`. If they are unset or belong
// to another task, returns the defaults of `Options`.
template <typename Options>
Options OptionsOf(const PredictionOptions& options) {
  const Options* const own = std::get_if<Options>(&options);
  return own == nullptr ? Options() : *own;
}

}  // namespace sfmamba::model

#endif  // SFMAMBA_MODEL_PREDICTION_OPTIONS_H_
