#ifndef SFMAMBA_MODEL_HEADS_MULTICLASS_NMS_H_
#define SFMAMBA_MODEL_HEADS_MULTICLASS_NMS_H_

#include <vector>

#include "ATen/core/Tensor.h"

namespace sfmamba::heads {

struct MulticlassNmsOptions {
  float score_threshold = 0.05f;  // Kept: greater.
  float iou_threshold = 0.5f;     // Suppressed: greater.
  int max_kept = 100;
  std::vector<int> classes;     // That take part; empty: all.
  bool class_agnostic = false;  // Boxes of all classes compete.
};

// Boxes that are left, the best first.
struct ScoredBoxes {
  at::Tensor boxes;    // [k, 4]
  at::Tensor scores;   // [k]
  at::Tensor indices;  // int64 [k]: row * classes + class
  at::Tensor labels;   // int64 [k]: class
};

// Non-maximum suppression of boxes [n, 4 classes], or [n, 4] for all classes
// alike, with probabilities [n, classes + 1], the background's last. Finite.
// Source: docs/heads.md, "Non-maximum suppression".
ScoredBoxes MulticlassNms(const at::Tensor& boxes,
                          const at::Tensor& probabilities,
                          const MulticlassNmsOptions& options);

}  // namespace sfmamba::heads

#endif  // SFMAMBA_MODEL_HEADS_MULTICLASS_NMS_H_
