#include "model/ops/cpu/cpu_implementation.h"

#include "kernels/simd/cpu_features.h"
#include "model/ops/compute_type.h"

namespace sfmamba::ops {

model::Precision CpuImplementation::NativePrecision(model::Precision wanted) {
  return IsNative(ComputeType(wanted)) ? wanted : model::Precision::kFloat32;
}

at::ScalarType CpuImplementation::TypeOf(bool is_output) const {
  return is_output ? at::kFloat : ComputeType(precision_);
}

bool CpuImplementation::IsNative(at::ScalarType type) {
  return type == at::kFloat || (type == at::kBFloat16 && kernels::HasAmxBf16());
}

}  // namespace sfmamba::ops
