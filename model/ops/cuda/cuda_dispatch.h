#ifndef SFMAMBA_MODEL_OPS_CUDA_CUDA_DISPATCH_H_
#define SFMAMBA_MODEL_OPS_CUDA_CUDA_DISPATCH_H_

#include <string>

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "kernels/base/bfloat16.h"
#include "kernels/base/float16.h"

namespace sfmamba::ops {

// Calls body(v), where v has the C++ type that the CUDA kernels use for the
// elements of x. The value of v has no meaning. Throws c10::Error if x is not
// fp32, fp16 or bf16.
template <typename Body>
void CudaDispatch(const at::Tensor& x, Body body) {
  switch (x.scalar_type()) {
    case at::kFloat:
      return body(float());
    case at::kBFloat16:
      return body(kernels::BFloat16());
    case at::kHalf:
      return body(kernels::Float16());
    default:
      TORCH_CHECK(false, "expected fp32, fp16 or bf16, got ", x.scalar_type());
  }
}

// Throws c10::Error if `status`, the result of launching a kernel, is an error.
inline void CheckLaunch(const absl::Status& status) {
  TORCH_CHECK(status.ok(), std::string(status.message()));
}

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_CUDA_CUDA_DISPATCH_H_
