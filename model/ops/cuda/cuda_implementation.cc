#include "model/ops/cuda/cuda_implementation.h"

#include "model/ops/compute_type.h"

namespace sfmamba::ops {

at::ScalarType CudaImplementation::TypeOf(bool is_output) const {
  return is_output ? at::kFloat : ComputeType(options_.precision);
}

}  // namespace sfmamba::ops
