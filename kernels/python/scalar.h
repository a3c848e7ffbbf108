// A single number with the interface of the vectors Vec8 and Vec16. Kernels
// that are written for vectors become scalar loops with this type. Real is
// float or double.
#ifndef SFMAMBA_KERNELS_PYTHON_SCALAR_H_
#define SFMAMBA_KERNELS_PYTHON_SCALAR_H_

#include <cmath>

#include "kernels/base/bfloat16.h"

namespace sfmamba::kernels {
namespace {

template <typename Real>
struct Scalar {
  static constexpr int kWidth = 1;
  using Mask = bool;

  Real v;

  static Scalar Set(Real value) { return {value}; }
  static Scalar Load(const Real* p) { return {*p}; }
  static Scalar Load(const BFloat16* p) { return {static_cast<float>(*p)}; }
  static bool All(Mask mask) { return mask; }
  void Store(Real* p) const { *p = v; }
};

template <typename Real>
inline Scalar<Real> operator+(Scalar<Real> a, Scalar<Real> b) {
  return {a.v + b.v};
}
template <typename Real>
inline Scalar<Real> operator*(Scalar<Real> a, Scalar<Real> b) {
  return {a.v * b.v};
}
template <typename Real>
inline Scalar<Real> Fma(Scalar<Real> a, Scalar<Real> b, Scalar<Real> c) {
  return {a.v * b.v + c.v};
}
template <typename Real>
inline Scalar<Real> Negate(Scalar<Real> a) {
  return {-a.v};
}
template <typename Real>
inline Scalar<Real> Abs(Scalar<Real> a) {
  return {std::abs(a.v)};
}
// Returns the larger of two values that are not negative. If either is a NaN,
// returns `b`. For the vectors, in contrast, a NaN counts as larger than all
// numbers. The difference changes no result: callers use the maximum to choose
// between Exp2Products() and Exp2ProductsUnbounded(), which do the same here.
template <typename Real>
inline Scalar<Real> MaxMagnitude(Scalar<Real> a, Scalar<Real> b) {
  return {a.v > b.v ? a.v : b.v};
}
template <typename Real>
inline bool LessEqual(Scalar<Real> a, Scalar<Real> b) {
  return a.v <= b.v;
}
template <typename Real>
inline Real Sum(Scalar<Real> a) {
  return a.v;
}

// These functions return the same as the functions of these names in
// simd_math.h and channel_scan_simd.h, but have no limits for their arguments.

template <int kCount, typename Real>
inline void Exp2Products(const Scalar<Real>* a, Scalar<Real> b,
                         Scalar<Real>* power) {
  for (int m = 0; m < kCount; ++m) power[m].v = std::exp2(a[m].v * b.v);
}
template <int kCount, typename Real>
inline void Exp2ProductsUnbounded(const Scalar<Real>* a, Scalar<Real> b,
                                  Scalar<Real>* power) {
  Exp2Products<kCount>(a, b, power);
}

template <typename Real>
inline Scalar<Real> Softplus2(Scalar<Real> v) {
  constexpr Real kLog2E = static_cast<Real>(1.4426950408889634);
  const Real positive = v.v < 0 ? Real{0} : v.v;  // NaN if v is NaN.
  return {std::log1p(std::exp2(-std::abs(v.v))) * kLog2E + positive};
}

template <typename Real>
inline Scalar<Real> OverOnePlusExp2(Scalar<Real> v, Scalar<Real> x) {
  return {v.v / (1 + std::exp2(x.v))};
}

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_PYTHON_SCALAR_H_
