#ifndef SFMAMBA_TESTS_KERNELS_SIMD_SIMD_MATH_FUNCTIONS_H_
#define SFMAMBA_TESTS_KERNELS_SIMD_SIMD_MATH_FUNCTIONS_H_

#include "kernels/base/bfloat16.h"

namespace sfmamba::kernels {

// The functions of kernels/simd/simd_math.h for arrays. `count` must be a
// multiple of 16.
struct SimdMathFunctions {
  void (*exp2)(const float* x, float* y, int count);
  void (*softplus2)(const float* x, float* y, int count);
  void (*round)(const float* x, BFloat16* y, int count);
  void (*widen)(const BFloat16* x, float* y, int count);
  // Both functions set y[i] to 2^(a*b[i]). exp2_product() requires |a*b[i]| <=
  // 126. exp2_product_any_range() also accepts a*b[i] below -126 and NaN.
  void (*exp2_product)(float a, const float* b, float* y, int count);
  void (*exp2_product_any_range)(float a, const float* b, float* y, int count);
};

SimdMathFunctions MathFunctionsAvx2();
SimdMathFunctions MathFunctionsAvx512();

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_TESTS_KERNELS_SIMD_SIMD_MATH_FUNCTIONS_H_
