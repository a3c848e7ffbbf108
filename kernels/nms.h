#ifndef SFMAMBA_KERNELS_NMS_H_
#define SFMAMBA_KERNELS_NMS_H_

#include <cstdint>

#include "kernels/cpu_features.h"

namespace sfmamba {

// Greedy non-maximum suppression, group by group. From the best score down
// (equal scores: the lower index first) a box is kept unless its IoU with a
// kept box of its group is greater than `iou_threshold`.
//
// As the reference does, IoUs are those of boxes shifted in fp32 by
// group * (m + 1), m being the largest coordinate of all boxes: the rounding of
// that shift decides borderline cases. 0 / 0 is not greater than anything.
// Source: heads.md, 7, of the specification; torchvision's batched_nms.
struct NmsArgs {
  int num_boxes;
  const float* boxes;     // [num_boxes, 4] x1, y1, x2, y2, all >= 0, finite
  const float* scores;    // [num_boxes], finite
  const int32_t* groups;  // [num_boxes] >= 0; null: one group, no shift
  float iou_threshold;
  int max_kept;   // The best so many; the search ends there.
  int32_t* kept;  // [min(max_kept, num_boxes)] indices, best first, written
};

// Returns how many are kept. Runs on the calling thread.
int NmsCpu(const NmsArgs& args, CpuIsa isa = ActiveCpuIsa());

// NmsCpu chooses among these, one per instruction set.
int NmsScalar(const NmsArgs& args);
int NmsAvx2(const NmsArgs& args);
int NmsAvx512(const NmsArgs& args);

}  // namespace sfmamba

#endif  // SFMAMBA_KERNELS_NMS_H_
