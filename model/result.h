#ifndef SFMAMBA_MODEL_RESULT_H_
#define SFMAMBA_MODEL_RESULT_H_

#include <cstdint>
#include <functional>
#include <variant>
#include <vector>

namespace sfmamba::model {

struct Classification {
  std::vector<float> logits;     // [num_classes]
  std::vector<float> embedding;  // [feature_width], normalised and pooled.
};

// Pixels of the picture, origin top-left, half-open.
struct Box {
  float x1 = 0, y1 = 0, x2 = 0, y2 = 0;
};

// The part of the picture that an instance's mask can cover; 0 elsewhere.
struct InstanceMask {
  int left = 0, top = 0, width = 0, height = 0;
  std::vector<uint8_t> data;  // [height, width] 0 or 1
};

struct Detection {
  Box box;
  int class_id = 0;
  float score = 0;
  // Lays the mask into the picture; on any thread, while the result or a copy
  // of it lives. Null unless masks were asked for and the model has any. All
  // masks together may be far larger than the picture, so each is made when it
  // is wanted.
  std::function<InstanceMask()> mask;
};

struct Detections {
  std::vector<Detection> detections;  // Score descending.
  // False: the network's values were not, and the rest is empty.
  bool finite = true;
};

struct Segmentation {
  int height = 0, width = 0;
  std::vector<uint16_t> labels;     // [height, width] class indices
  std::vector<uint8_t> confidence;  // The same of 0..255, if it was asked for.
  std::vector<int64_t> areas;       // [num_classes] pixels
  bool finite = true;               // As of Detections.
};

// What a model says of one image: one alternative a kind of head.
using Result = std::variant<Classification, Detections, Segmentation>;

}  // namespace sfmamba::model

#endif  // SFMAMBA_MODEL_RESULT_H_
