// Compares one box with many others, one per lane of the vector type V.
// nms_isa.cc includes this header and is compiled once for each instruction
// set, with a different V. The operations are the same as in nms_cpu.cc, so
// that all instruction sets keep the same boxes.
#ifndef SFMAMBA_KERNELS_DETECTION_NMS_SIMD_H_
#define SFMAMBA_KERNELS_DETECTION_NMS_SIMD_H_

#include "kernels/detection/nms.h"

namespace sfmamba::kernels {
namespace {

template <typename V>
bool OverlapsAny(const NmsColumns& kept, const NmsBox& box,
                 float iou_threshold) {
  static_assert(NmsColumns::kPadding % V::kWidth == 0);
  const V x1 = V::Set(box.x1), y1 = V::Set(box.y1);
  const V x2 = V::Set(box.x2), y2 = V::Set(box.y2);
  const V area = V::Set(box.area), threshold = V::Set(iou_threshold);
  const V zero = V::Set(0.0f);
  for (int i = 0; i < kept.count; i += V::kWidth) {
    const V left = Max(V::Load(kept.x1 + i), x1);
    const V top = Max(V::Load(kept.y1 + i), y1);
    const V right = Min(V::Load(kept.x2 + i), x2);
    const V bottom = Min(V::Load(kept.y2 + i), y2);
    const V overlap = Max(zero, right - left) * Max(zero, bottom - top);
    const V both = V::Load(kept.area + i) + area;
    if (V::Any(Greater(overlap / (both - overlap), threshold))) return true;
  }
  return false;
}

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_DETECTION_NMS_SIMD_H_
