#ifndef SFMAMBA_KERNELS_DETECTION_NMS_H_
#define SFMAMBA_KERNELS_DETECTION_NMS_H_

#include <cstdint>

#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// Greedy non-maximum suppression within each group. Visits the boxes in order
// of descending score. If scores are equal, the box with the lower index comes
// first. A box is kept unless its IoU with an already kept box of the same
// group is greater than `iou_threshold`.
//
// As in torchvision's batched_nms, each box is first shifted in fp32 by group *
// (m + 1), where m is the largest coordinate of all boxes. The rounding of this
// shift decides borderline cases. An IoU of 0 / 0 suppresses nothing. A NaN
// score counts as the lowest score. If boxes are not finite, it is unspecified
// which boxes are kept, but memory accesses stay in bounds.
// Source: docs/heads.md, "Non-maximum suppression"; torchvision's batched_nms.
struct NmsArgs {
  int num_boxes;
  const float* boxes;   // [num_boxes, 4] x1, y1, x2, y2, all >= 0, finite
  const float* scores;  // [num_boxes], finite
  // [num_boxes], >= 0. The memory use grows with the largest group number. Null
  // means that all boxes are in one group and are not shifted.
  const int32_t* groups;
  float iou_threshold;
  int max_kept;  // The search ends when this many boxes are kept.
  // Written: the indices of the kept boxes, best first. Has room for
  // min(max_kept, num_boxes) indices.
  int32_t* kept;
};

// Returns the number of kept boxes. Every instruction set keeps the same boxes.
// Runs on the calling thread.
int NmsCpu(const NmsArgs& args, CpuIsa isa = ActiveCpuIsa());

// The reference implementation, which NmsCpu() calls for CpuIsa::kScalar. Each
// kept box removes the later boxes that overlap it.
int NmsScalar(const NmsArgs& args);

// A box after the shift by its group (see NmsArgs), and the box's area.
struct NmsBox {
  float x1, y1, x2, y2, area;
};

// Shifted boxes, stored as one array per coordinate. Each array is padded to a
// multiple of kPadding elements. The padding of `area` is NaN, so that padding
// overlaps no box.
struct NmsColumns {
  static constexpr int kPadding = 16;

  int count;
  const float *x1, *y1, *x2, *y2, *area;  // [count]
};

// NmsCpu() calls these for AVX2 and AVX-512. They return true if the IoU of
// `box` with any box in `kept` is greater than `iou_threshold`.
bool OverlapsAnyAvx2(const NmsColumns& kept, const NmsBox& box,
                     float iou_threshold);
bool OverlapsAnyAvx512(const NmsColumns& kept, const NmsBox& box,
                       float iou_threshold);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_DETECTION_NMS_H_
