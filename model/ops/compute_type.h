#ifndef SFMAMBA_MODEL_OPS_COMPUTE_TYPE_H_
#define SFMAMBA_MODEL_OPS_COMPUTE_TYPE_H_

#include "c10/core/ScalarType.h"
#include "model/config.h"
#include "model/tuning/scan_plan_table.h"

namespace sfmamba {

inline at::ScalarType ComputeType(Precision precision) {
  switch (precision) {
    case Precision::kBFloat16:
      return at::kBFloat16;
    case Precision::kFloat16:
      return at::kHalf;
    case Precision::kFloat32:
      break;
  }
  return at::kFloat;
}

// `type` is one of those.
inline ScanShape::Type ScanType(at::ScalarType type) {
  if (type == at::kBFloat16) return ScanShape::kBFloat16;
  return type == at::kHalf ? ScanShape::kFloat16 : ScanShape::kFloat;
}

}  // namespace sfmamba

#endif  // SFMAMBA_MODEL_OPS_COMPUTE_TYPE_H_
