// Elementary functions over a vector type V (Vec8, Vec16 or a VecPair of them).
// Files that include this header are compiled for different instruction sets.
// The functions have internal linkage, so that code for one instruction set is
// never linked into a file for another. A NaN argument gives NaN unless a
// function says otherwise.
#ifndef SFMAMBA_KERNELS_SIMD_SIMD_MATH_H_
#define SFMAMBA_KERNELS_SIMD_SIMD_MATH_H_

#include <cstdint>

#include "kernels/base/logarithms.h"

namespace sfmamba::kernels {
namespace {

// Adding kRound to a value of magnitude below 2^22 rounds the value to an
// integer. The lowest bits of the sum then hold this integer.
constexpr float kRound = 12582912.0f;  // 1.5 * 2^23

// The coefficients of a polynomial that approximates 2^f for f in [-1/2, 1/2]
// with a relative error of 1e-7 (minimax). The first coefficient is fixed to 1,
// so that 2^0 is exactly 1. The selective scan multiplies its state by such a
// power (the decay) at each token. If the decay is 2^0, the state must not
// change.
constexpr float kExp2[] = {1.0f,          0.693146978f,   0.240222421f,
                           0.0555073374f, 0.00967151264f, 0.00132647272f};

// Returns 2^x for |x| <= 126. Unspecified for other x and for NaN.
template <typename V>
inline V Exp2(V x) {
  const V t = x + V::Set(kRound);
  const V f = x - (t - V::Set(kRound));
  V p = V::Set(kExp2[5]);
  for (int degree = 4; degree >= 0; --degree) {
    p = Fma(p, f, V::Set(kExp2[degree]));
  }
  return AddExponent(p, t);
}

// Sets power[m] = 2^(a[m]*b) for m < kCount if |a[m]*b| <= 126. For other
// products power[m] is unspecified. Each step of the computation is done for
// all powers before the next step. If the powers were computed one after
// another, most instructions would wait for the result of the instruction
// before. The waiting instructions would fill the CPU's scheduler, so that the
// CPU could not start the next power meanwhile.
template <int kCount, typename V>
inline void Exp2Products(const V* a, V b, V* power) {
  V t[kCount], f[kCount], p[kCount];
  for (int m = 0; m < kCount; ++m) t[m] = Fma(a[m], b, V::Set(kRound));
  for (int m = 0; m < kCount; ++m) f[m] = t[m] - V::Set(kRound);
  for (int m = 0; m < kCount; ++m) f[m] = Fms(a[m], b, f[m]);
  for (int m = 0; m < kCount; ++m) {
    p[m] = Fma(V::Set(kExp2[5]), f[m], V::Set(kExp2[4]));
  }
  for (int degree = 3; degree >= 0; --degree) {
    for (int m = 0; m < kCount; ++m) {
      p[m] = Fma(p[m], f[m], V::Set(kExp2[degree]));
    }
  }
  for (int m = 0; m < kCount; ++m) power[m] = AddExponent(p[m], t[m]);
}

// Sets power[m] = 2^(a[m]*b) for m < kCount if a[m]*b <= 126. If a[m]*b is at
// most -126, power[m] is 0. If a[m]*b is NaN, so is power[m]. All other results
// have the same bits as in Exp2Products().
template <int kCount, typename V>
inline void Exp2ProductsAnyRange(const V* a, V b, V* power) {
  Exp2Products<kCount>(a, b, power);
  for (int m = 0; m < kCount; ++m) {
    const V x = a[m] * b;
    power[m] = Select(LessEqual(x, V::Set(-126.0f)), V::Set(0.0f), power[m]);
    power[m] = Select(IsNan(x), x, power[m]);
  }
}

// Evaluates the polynomial with coefficients c[0] .. c[kCount-1]. Even and odd
// powers are summed separately, because two short chains of operations keep the
// CPU busier than one long chain.
template <int kCount, typename V>
inline V Polynomial(const float (&c)[kCount], V x) {
  const V square = x * x;
  V sums[2] = {V::Set(c[kCount - 2]), V::Set(c[kCount - 1])};
  for (int i = kCount - 3; i >= 0; --i) {
    V& sum = sums[(kCount - i) % 2 == 0 ? 0 : 1];
    sum = Fma(sum, square, V::Set(c[i]));
  }
  const V low = sums[kCount % 2], high = sums[1 - kCount % 2];
  return Fma(high, x, low);
}

// The coefficients of a polynomial that approximates log2(1 + t) / t for t in
// [0, 1] with a relative error of 3e-8 (minimax).
constexpr float kLog2OnePlus[] = {
    1.442694997f,   -0.721340208f,  0.4806929571f,
    -0.3584084709f, 0.2756414075f,  -0.1971189623f,
    0.112856187f,   -0.0425670595f, 0.007549181843f};

// Returns log2(1 + 2^v), the softplus in base 2. The relative error is below
// 4e-7 for v above -126. For smaller v the result is positive and at most
// 2^-125.
template <typename V>
inline V Softplus2(V v) {
  // t = 2^-|v| is in (0, 1]. log2(1 + t) is computed as Polynomial(t) * t. The
  // sum 1 + t is not computed, because it would lose the last digits of a small
  // t.
  const V t = Exp2(Max(V::Set(-126.0f), Negate(Abs(v))));
  return Fma(Polynomial(kLog2OnePlus, t), t, Max(V::Set(0.0f), v));
}

// Returns v / (1 + 2^x). If x is -v*log2(e), this is SiLU(v).
template <typename V>
inline V OverOnePlusExp2(V v, V x) {
  const V inside = Max(V::Set(-126.0f), Min(V::Set(126.0f), x));
  return v / (V::Set(1.0f) + Exp2(inside));
}

// Loads the first `lanes` values from p and sets the other lanes of the result
// to 0. `lanes` is at most kWidth.
template <typename V, typename T>
inline V LoadLanes(const T* p, int lanes) {
  if (lanes == V::kWidth) return V::Load(p);
  T values[V::kWidth] = {};
  for (int i = 0; i < lanes; ++i) values[i] = p[i];
  return V::Load(values);
}

// Stores the first `lanes` values of v to p. `lanes` is at most kWidth.
template <typename V, typename T>
inline void StoreLanes(V v, T* p, int lanes) {
  if (lanes == V::kWidth) return v.Store(p);
  T values[V::kWidth];
  v.Store(values);
  for (int i = 0; i < lanes; ++i) p[i] = values[i];
}

// Divides `count` values into vectors and calls f(c, lanes) for each vector. c
// is the index of its first value. `lanes` is kWidth, but the last vector may
// have fewer.
template <typename V, typename F>
inline void ForEachVector(int64_t count, F f) {
  int64_t c = 0;
  for (; c + V::kWidth <= count; c += V::kWidth) f(c, V::kWidth);
  if (c < count) f(c, static_cast<int>(count - c));
}

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SIMD_SIMD_MATH_H_
