#include "kernels/nms_simd.h"
#include "kernels/vec16.h"

namespace sfmamba {

bool OverlapsAnyAvx512(const NmsColumns& kept, const NmsBox& box,
                       float iou_threshold) {
  return OverlapsAny<Vec16>(kept, box, iou_threshold);
}

}  // namespace sfmamba
