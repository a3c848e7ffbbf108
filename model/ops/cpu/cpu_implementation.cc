#include "model/ops/cpu/cpu_implementation.h"

#include "kernels/simd/cpu_features.h"

namespace sfmamba::ops {
namespace {

CpuImplementation::Products FastestProducts(model::Precision precision) {
  using Products = CpuImplementation::Products;
  switch (precision) {
    case model::Precision::kFloat32:
      return Products::kFloat;
    case model::Precision::kBFloat16:
      if (kernels::HasAmxBf16()) return Products::kOneDnn;
      if (kernels::HasAvx512Bf16()) return Products::kBFloat16;
      break;
    case model::Precision::kFloat16:
      break;
  }
  return Products::kTorch;
}

}  // namespace

CpuImplementation::CpuImplementation(model::Precision precision)
    : CpuImplementation(precision, FastestProducts(precision)) {}

model::Precision CpuImplementation::NativePrecision(model::Precision wanted) {
  return FastestProducts(wanted) == Products::kTorch
             ? model::Precision::kFloat32
             : wanted;
}

bool CpuImplementation::HasLoops(model::Precision precision) {
  if (kernels::ActiveCpuIsa() == kernels::CpuIsa::kScalar) return false;
  const Products products = FastestProducts(precision);
  return products == Products::kFloat || products == Products::kBFloat16;
}

}  // namespace sfmamba::ops
