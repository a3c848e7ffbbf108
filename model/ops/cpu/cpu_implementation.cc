#include "model/ops/cpu/cpu_implementation.h"

#include "c10/util/Exception.h"
#include "kernels/simd/cpu_features.h"

namespace sfmamba::ops {

CpuImplementation::CpuImplementation(model::Precision precision,
                                     bool int8_convolutions)
    : products_(precision == model::Precision::kBFloat16 ? at::kBFloat16
                                                         : at::kFloat),
      int8_(precision == model::Precision::kInt8),
      int8_convolutions_(int8_ && int8_convolutions),
      attention_(int8_ && kernels::HasAvx512Bf16() ? at::kBFloat16
                                                   : products_) {
  TORCH_CHECK(precision != model::Precision::kFloat16,
              "expected fp32, bf16 or int8, got fp16");
}

model::Precision CpuImplementation::NativePrecision(model::Precision wanted) {
  const bool native =
      (wanted == model::Precision::kBFloat16 && kernels::HasAvx512Bf16()) ||
      (wanted == model::Precision::kInt8 && kernels::HasInt8());
  return native ? wanted : model::Precision::kFloat32;
}

bool CpuImplementation::HasLoops() {
  return kernels::ActiveCpuIsa() != kernels::CpuIsa::kScalar;
}

int64_t CpuImplementation::ImagesAtOnce() {
  // With AMX, reading the weights takes longer than computing one image's
  // products.
  return kernels::HasAmxBf16() ? 8 : 1;
}

}  // namespace sfmamba::ops
