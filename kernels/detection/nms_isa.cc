#include "kernels/detection/nms_simd.h"
#include "kernels/simd/vec_isa.h"

namespace sfmamba::kernels {

bool OverlapsAnyIsa(const NmsColumns& kept, const NmsBox& box,
                    float iou_threshold) {
  return OverlapsAny<VecIsa>(kept, box, iou_threshold);
}

}  // namespace sfmamba::kernels
