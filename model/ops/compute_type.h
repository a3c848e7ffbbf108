#ifndef SFMAMBA_MODEL_OPS_COMPUTE_TYPE_H_
#define SFMAMBA_MODEL_OPS_COMPUTE_TYPE_H_

#include "c10/core/ScalarType.h"
#include "model/config.h"
#include "model/tuning/scan_plan_table.h"

namespace sfmamba::ops {

inline at::ScalarType ComputeType(model::Precision precision) {
  switch (precision) {
    case model::Precision::kBFloat16:
      return at::kBFloat16;
    case model::Precision::kFloat16:
      return at::kHalf;
    case model::Precision::kFloat32:
    case model::Precision::kInt8:  // Only products are int8.
      break;
  }
  return at::kFloat;
}

// `type` is a result of ComputeType().
inline tuning::ScanShape::Type ScanType(at::ScalarType type) {
  if (type == at::kBFloat16) return tuning::ScanShape::kBFloat16;
  return type == at::kHalf ? tuning::ScanShape::kFloat16
                           : tuning::ScanShape::kFloat;
}

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_COMPUTE_TYPE_H_
