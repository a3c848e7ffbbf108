#ifndef SFMAMBA_MODEL_RESULT_H_
#define SFMAMBA_MODEL_RESULT_H_

#include <cstdint>
#include <functional>
#include <variant>
#include <vector>

#include "base/mask.h"

namespace sfmamba::model {

struct Classification {
  std::vector<float> logits;     // [num_classes]
  std::vector<float> embedding;  // [feature_width], normalised and pooled.
};

// In pixels of the picture, with the origin at the top left.
struct Box {
  float x1 = 0, y1 = 0, x2 = 0, y2 = 0;
};

// An instance's mask within a part of the picture. It is 0 elsewhere.
using InstanceMask = base::Mask;

struct Detection {
  Box box;
  int class_id = 0;
  float score = 0;
  // Computes the mask in the picture's pixels. Thread-safe; valid while the
  // result or a copy of it lives. Null unless masks were requested and the
  // model has any. Masks are computed on demand because together they may be
  // far larger than the picture.
  std::function<InstanceMask()> mask;
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
  // Whether all values of the network were finite. If not, the rest is empty.
  bool finite = true;
};

// A model's result for one image. Each kind of head has its alternative.
using Result = std::variant<Classification, Detections, Segmentation>;

}  // namespace sfmamba::model

#endif  // SFMAMBA_MODEL_RESULT_H_
