// Implements SimdMathFunctions with a vector type V. The file that includes
// this header is compiled once for each instruction set.
#ifndef SFMAMBA_TESTS_KERNELS_SIMD_SIMD_MATH_FUNCTIONS_SIMD_H_
#define SFMAMBA_TESTS_KERNELS_SIMD_SIMD_MATH_FUNCTIONS_SIMD_H_

#include "kernels/simd/simd_math.h"
#include "tests/kernels/simd/simd_math_functions.h"

namespace sfmamba::kernels {
namespace {

template <typename V>
struct Arrays {
  static void Exp2(const float* x, float* y, int count) {
    ForEachVector<V>(count, [&](int64_t c, int) {
      kernels::Exp2(V::Load(x + c)).Store(y + c);
    });
  }
  static void Softplus2(const float* x, float* y, int count) {
    ForEachVector<V>(count, [&](int64_t c, int) {
      kernels::Softplus2(V::Load(x + c)).Store(y + c);
    });
  }
  static void Round(const float* x, BFloat16* y, int count) {
    ForEachVector<V>(count,
                     [&](int64_t c, int) { V::Load(x + c).Store(y + c); });
  }
  static void Widen(const BFloat16* x, float* y, int count) {
    ForEachVector<V>(count,
                     [&](int64_t c, int) { V::Load(x + c).Store(y + c); });
  }
  template <void (*kPower)(const V*, V, V*)>
  static void Product(float a, const float* b, float* y, int count) {
    const V factor = V::Set(a);
    ForEachVector<V>(count, [&](int64_t c, int) {
      V power;
      kPower(&factor, V::Load(b + c), &power);
      power.Store(y + c);
    });
  }

  static SimdMathFunctions Functions() {
    return {Exp2,
            Softplus2,
            Round,
            Widen,
            Product<Exp2Products<1, V>>,
            Product<Exp2ProductsAnyRange<1, V>>};
  }
};

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_TESTS_KERNELS_SIMD_SIMD_MATH_FUNCTIONS_SIMD_H_
