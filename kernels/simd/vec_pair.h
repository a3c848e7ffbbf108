// A pair of vectors for the same arithmetic on both. In a long chain of
// dependent operations, the CPU can work on one vector while it waits for a
// result of the other. V is Vec8, Vec16 or a VecPair.
//
// A function of simd_math.h accepts a VecPair instead of a vector if it uses
// only the operations below.
#ifndef SFMAMBA_KERNELS_SIMD_VEC_PAIR_H_
#define SFMAMBA_KERNELS_SIMD_VEC_PAIR_H_

namespace sfmamba::kernels {
namespace {

template <typename V>
struct VecPair {
  V low, high;

  static VecPair Set(float value) { return {V::Set(value), V::Set(value)}; }
};

template <typename V>
inline VecPair<V> operator+(VecPair<V> a, VecPair<V> b) {
  return {a.low + b.low, a.high + b.high};
}
template <typename V>
inline VecPair<V> operator-(VecPair<V> a, VecPair<V> b) {
  return {a.low - b.low, a.high - b.high};
}
template <typename V>
inline VecPair<V> operator*(VecPair<V> a, VecPair<V> b) {
  return {a.low * b.low, a.high * b.high};
}
template <typename V>
inline VecPair<V> operator/(VecPair<V> a, VecPair<V> b) {
  return {a.low / b.low, a.high / b.high};
}
template <typename V>
inline VecPair<V> Fma(VecPair<V> a, VecPair<V> b, VecPair<V> c) {
  return {Fma(a.low, b.low, c.low), Fma(a.high, b.high, c.high)};
}
template <typename V>
inline VecPair<V> Min(VecPair<V> a, VecPair<V> b) {
  return {Min(a.low, b.low), Min(a.high, b.high)};
}
template <typename V>
inline VecPair<V> Max(VecPair<V> a, VecPair<V> b) {
  return {Max(a.low, b.low), Max(a.high, b.high)};
}
template <typename V>
inline VecPair<V> AddExponent(VecPair<V> p, VecPair<V> t) {
  return {AddExponent(p.low, t.low), AddExponent(p.high, t.high)};
}

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SIMD_VEC_PAIR_H_
