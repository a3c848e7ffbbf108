#include "kernels/nms_simd.h"
#include "kernels/vec8.h"

namespace sfmamba {

bool OverlapsAnyAvx2(const NmsColumns& kept, const NmsBox& box,
                     float iou_threshold) {
  return OverlapsAny<Vec8>(kept, box, iou_threshold);
}

}  // namespace sfmamba
