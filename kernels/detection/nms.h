#ifndef SFMAMBA_KERNELS_DETECTION_NMS_H_
#define SFMAMBA_KERNELS_DETECTION_NMS_H_

#include <cstdint>

#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// Greedy non-maximum suppression within each group. Boxes are visited from the
// best score down; of equal scores, the lower index comes first. A box is kept
// unless its IoU with a kept box of its group is greater than `iou_threshold`.
//
// As in the reference, boxes are first shifted in fp32 by group * (m + 1),
// where m is the largest coordinate of all boxes. The rounding of this shift
// decides borderline cases. An IoU of 0 / 0 suppresses nothing. A NaN score
// counts as the lowest. With boxes that are not finite, the choice is
// unspecified but memory-safe.
// Source: docs/heads.md, "Non-maximum suppression"; torchvision's batched_nms.
struct NmsArgs {
  int num_boxes;
  const float* boxes;   // [num_boxes, 4] x1, y1, x2, y2, all >= 0, finite
  const float* scores;  // [num_boxes], finite
  // [num_boxes], >= 0. Memory grows with the largest. Null means that all boxes
  // are in one group, without a shift.
  const int32_t* groups;
  float iou_threshold;
  int max_kept;   // The search ends when this many boxes are kept.
  int32_t* kept;  // [min(max_kept, num_boxes)] indices, best first, written
};

// Returns the number of boxes kept, which is the same for every instruction
// set, as are the boxes. Runs on the calling thread.
int NmsCpu(const NmsArgs& args, CpuIsa isa = ActiveCpuIsa());

// The reference, which NmsCpu calls for kScalar. Each kept box removes later
// ones.
int NmsScalar(const NmsArgs& args);

// A shifted box and its area.
struct NmsBox {
  float x1, y1, x2, y2, area;
};

// Shifted boxes as one array per coordinate. The arrays are padded to a
// multiple of kPadding; the areas in the padding are NaN.
struct NmsColumns {
  static constexpr int kPadding = 16;

  int count;
  const float *x1, *y1, *x2, *y2, *area;  // [count]
};

// The inner loop of NmsCpu for the other instruction sets. Returns whether the
// IoU of `box` with any of `kept` is greater than `iou_threshold`.
bool OverlapsAnyAvx2(const NmsColumns& kept, const NmsBox& box,
                     float iou_threshold);
bool OverlapsAnyAvx512(const NmsColumns& kept, const NmsBox& box,
                       float iou_threshold);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_DETECTION_NMS_H_
