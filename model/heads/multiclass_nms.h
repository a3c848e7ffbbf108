#ifndef SFMAMBA_MODEL_HEADS_MULTICLASS_NMS_H_
#define SFMAMBA_MODEL_HEADS_MULTICLASS_NMS_H_

#include <vector>

#include "ATen/core/Tensor.h"

namespace sfmamba::heads {

struct MulticlassNmsOptions {
  float score_threshold = 0.05f;  // Only greater scores are kept.
  float iou_threshold = 0.5f;     // Boxes with greater IoUs are suppressed.
  int max_kept = 100;
  std::vector<int> classes;     // The wanted classes. If empty, all.
  bool class_agnostic = false;  // A box also suppresses other classes.
};

// The boxes that were not suppressed, in descending order of scores.
struct ScoredBoxes {
  at::Tensor boxes;    // [k, 4]
  at::Tensor scores;   // [k]
  at::Tensor indices;  // int64 [k]: row * classes + class
  at::Tensor labels;   // int64 [k]: class
};

// Non-maximum suppression. Boxes are [n, 4 classes], or [n, 4] if all classes
// share them. Probabilities are [n, classes + 1], with the background last. All
// values must be finite. Source: docs/heads.md, "Non-maximum suppression".
ScoredBoxes MulticlassNms(const at::Tensor& boxes,
                          const at::Tensor& probabilities,
                          const MulticlassNmsOptions& options);

}  // namespace sfmamba::heads

#endif  // SFMAMBA_MODEL_HEADS_MULTICLASS_NMS_H_
