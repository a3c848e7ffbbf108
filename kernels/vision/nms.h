#ifndef SFMAMBA_KERNELS_VISION_NMS_H_
#define SFMAMBA_KERNELS_VISION_NMS_H_

#include <cstdint>

#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// Greedy non-maximum suppression, group by group. From the best score down
// (equal scores: the lower index first) a box is kept unless its IoU with a
// kept box of its group is greater than `iou_threshold`.
//
// As the reference does, IoUs are those of boxes shifted in fp32 by
// group * (m + 1), m being the largest coordinate of all boxes: the rounding of
// that shift decides borderline cases. 0 / 0 is not greater than anything.
// A NaN among the scores counts as the lowest; what boxes with values that are
// not finite do is unspecified but harmless.
// Source: docs/heads.md, "Non-maximum suppression"; torchvision's batched_nms.
struct NmsArgs {
  int num_boxes;
  const float* boxes;     // [num_boxes, 4] x1, y1, x2, y2, all >= 0, finite
  const float* scores;    // [num_boxes], finite
  const int32_t* groups;  // [num_boxes] >= 0, small: memory grows with the
                          // largest; null: one group, no shift
  float iou_threshold;
  int max_kept;   // The best so many; the search ends there.
  int32_t* kept;  // [min(max_kept, num_boxes)] indices, best first, written
};

// Returns how many are kept. Runs on the calling thread. Every instruction set
// keeps the same boxes.
int NmsCpu(const NmsArgs& args, CpuIsa isa = ActiveCpuIsa());

// NmsCpu's choice kScalar, and the reference: each kept box strikes out later
// ones.
int NmsScalar(const NmsArgs& args);

// A box, shifted, and its area.
struct NmsBox {
  float x1, y1, x2, y2, area;
};

// Shifted boxes as columns, readable up to the next multiple of kPadding; the
// areas there are NaN.
struct NmsColumns {
  static constexpr int kPadding = 16;

  int count;
  const float *x1, *y1, *x2, *y2, *area;  // [count]
};

// The inner loop of NmsCpu's other choices: whether the IoU of `box` with any
// of `kept` is greater than `iou_threshold`.
bool OverlapsAnyAvx2(const NmsColumns& kept, const NmsBox& box,
                     float iou_threshold);
bool OverlapsAnyAvx512(const NmsColumns& kept, const NmsBox& box,
                       float iou_threshold);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_VISION_NMS_H_
