#ifndef SFMAMBA_MODEL_RESULT_H_
#define SFMAMBA_MODEL_RESULT_H_

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "base/mask.h"

namespace sfmamba::model {

// What each position of a classifier's last map adds to the logit of a class,
// which is their mean. Empty unless requested.
struct HeatMap {
  int class_id = 0;  // The one with the greatest logit, ties by id.
  int height = 0, width = 0;
  std::vector<float> values;  // [height, width]
};

struct Classification {
  std::vector<float> logits;  // [num_classes]
  // [embedding_width]: the pooled features that the logits are computed from.
  // Empty unless requested.
  std::vector<float> embedding;
  HeatMap heat_map;
};

// In pixels of the picture, with the origin at the top left.
struct Box {
  float x1 = 0, y1 = 0, x2 = 0, y2 = 0;
};

// An instance's mask in the picture's pixels. Its runs are computed on demand,
// because masks together may be far larger than the picture.
using InstanceMask = base::LineMask;

struct Detection {
  Box box;
  int class_id = 0;
  float score = 0;
  // Null unless masks were requested and the model has any.
  std::shared_ptr<const InstanceMask> mask;
};

struct Detections {
  std::vector<Detection> detections;  // In descending order of scores.
  // Whether all values of the network were finite. If not, there are no
  // detections.
  bool finite = true;
};

struct Segmentation {
  int height = 0, width = 0;
  std::vector<uint16_t> labels;  // [height, width] class indices
  // [height, width]: the label's probability times 255; empty unless requested.
  std::vector<uint8_t> confidence;
  std::vector<int64_t> areas;  // [num_classes] in pixels
  // Only if SegmentationOptions::logits asks for them; `labels` and the others
  // are then empty: [height, width, num_classes], of the head's own size.
  std::vector<float> logits;
  // Whether all values of the network were finite. If not, the rest is empty.
  bool finite = true;
};

// A model's result for one image. Each kind of head has its alternative.
using Result = std::variant<Classification, Detections, Segmentation>;

}  // namespace sfmamba::model

#endif  // SFMAMBA_MODEL_RESULT_H_
