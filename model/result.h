#ifndef SFMAMBA_MODEL_RESULT_H_
#define SFMAMBA_MODEL_RESULT_H_

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "base/mask.h"

namespace sfmamba::model {

// Shows which positions of a classifier's last map favour a class. The mean of
// all values is the logit of the class. Empty unless requested.
struct HeatMap {
  int class_id = 0;  // The class with the greatest logit.
  int height = 0, width = 0;
  std::vector<float> values;  // [height, width]
};

struct Classification {
  std::vector<float> logits;  // [num_classes]
  // The features from which the logits are computed, [embedding_width]. Empty
  // unless requested.
  std::vector<float> embedding;
  HeatMap heat_map;
};

// A box in pixels of the picture, with the origin at the top left.
struct Box {
  float x1 = 0, y1 = 0, x2 = 0, y2 = 0;
};

// An instance's mask in pixels of the picture. Its runs are computed on demand,
// because all masks together may be much larger than the picture.
using InstanceMask = base::LineMask;

struct Detection {
  Box box;
  int class_id = 0;
  float score = 0;
  // Null unless masks were requested and the model computes masks.
  std::shared_ptr<const InstanceMask> mask;
};

struct Detections {
  std::vector<Detection> detections;  // In descending order of scores.
  // Whether all values that the network computed were finite. If not,
  // `detections` is empty.
  bool finite = true;
};

struct Segmentation {
  int height = 0, width = 0;
  std::vector<uint16_t> labels;  // [height, width] class indices
  // The probability of each pixel's label times 255, [height, width]. Empty
  // unless requested.
  std::vector<uint8_t> confidence;
  std::vector<int64_t> areas;  // [num_classes] in pixels
  // The head's logits, [height, width, num_classes], if
  // SegmentationOptions::logits was set. In this case `labels`, `confidence`
  // and `areas` are empty, and `height` and `width` are the size of the logits.
  std::vector<float> logits;
  // Whether all values that the network computed were finite. If not, all other
  // fields are empty or 0.
  bool finite = true;
};

// A model's result for one image. The model's task determines the alternative.
using Result = std::variant<Classification, Detections, Segmentation>;

}  // namespace sfmamba::model

#endif  // SFMAMBA_MODEL_RESULT_H_
