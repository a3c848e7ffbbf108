// Eight floats in an AVX2 register. Only the *_avx2.cc files include this
// header, since only they are compiled for AVX2 and FMA. Everything has
// internal linkage, so that no AVX2 code can be linked into another file.
#ifndef SFMAMBA_KERNELS_SIMD_VEC8_H_
#define SFMAMBA_KERNELS_SIMD_VEC8_H_

#include <immintrin.h>

#include <cstdint>

#include "kernels/base/bfloat16.h"

namespace sfmamba::kernels {
namespace {

struct Vec8 {
  static constexpr int kWidth = 8;
  using Mask = __m256;  // Each lane has all bits set, or none.

  __m256 v;

  static Vec8 Set(float value) { return {_mm256_set1_ps(value)}; }
  static Vec8 Load(const float* p) { return {_mm256_loadu_ps(p)}; }
  static Vec8 Load(const BFloat16* p) {
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m256i word = _mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16);
    return {_mm256_castsi256_ps(word)};
  }
  static bool Any(Mask mask) { return _mm256_movemask_ps(mask) != 0; }
  static bool All(Mask mask) { return _mm256_movemask_ps(mask) == 0xff; }
  // Writes a byte for each lane: 1 if `mask` is set for the lane, otherwise 0.
  static void StoreFlags(Mask mask, uint8_t* p) {
    const __m256i flags =
        _mm256_and_si256(_mm256_castps_si256(mask), _mm256_set1_epi32(1));
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(flags),
                                          _mm256_extracti128_si256(flags, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p),
                     _mm_packus_epi16(words, words));
  }
  void Store(float* p) const { _mm256_storeu_ps(p, v); }
  // Rounds to nearest, ties to even. A NaN stays a NaN. BFloat16(float) gives
  // the same bits.
  void Store(BFloat16* p) const {
    const __m256i word = _mm256_castps_si256(v);
    const __m256i high = _mm256_srli_epi32(word, 16);
    const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    const __m256i bias = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
    const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(word, bias), 16);
    const __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    const __m256i half = _mm256_blendv_epi8(rounded, quiet, nan);
    const __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(half),
                                            _mm256_extracti128_si256(half, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), packed);
  }
};

inline Vec8 operator+(Vec8 a, Vec8 b) { return {_mm256_add_ps(a.v, b.v)}; }
inline Vec8 operator-(Vec8 a, Vec8 b) { return {_mm256_sub_ps(a.v, b.v)}; }
inline Vec8 operator*(Vec8 a, Vec8 b) { return {_mm256_mul_ps(a.v, b.v)}; }
inline Vec8 operator/(Vec8 a, Vec8 b) { return {_mm256_div_ps(a.v, b.v)}; }

// These return a*b + c and a*b - c, rounded once.
inline Vec8 Fma(Vec8 a, Vec8 b, Vec8 c) {
  return {_mm256_fmadd_ps(a.v, b.v, c.v)};
}
inline Vec8 Fms(Vec8 a, Vec8 b, Vec8 c) {
  return {_mm256_fmsub_ps(a.v, b.v, c.v)};
}

// If either argument is a NaN, these return the second argument.
inline Vec8 Min(Vec8 a, Vec8 b) { return {_mm256_min_ps(a.v, b.v)}; }
inline Vec8 Max(Vec8 a, Vec8 b) { return {_mm256_max_ps(a.v, b.v)}; }

inline Vec8 Abs(Vec8 a) {
  return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.v)};
}
inline Vec8 Negate(Vec8 a) {
  return {_mm256_xor_ps(_mm256_set1_ps(-0.0f), a.v)};
}

// Returns the larger of two values whose sign bits are 0. A NaN counts as
// larger than all numbers.
inline Vec8 MaxMagnitude(Vec8 a, Vec8 b) {
  return {_mm256_castsi256_ps(
      _mm256_max_epu32(_mm256_castps_si256(a.v), _mm256_castps_si256(b.v)))};
}

// Adds the integer in the lowest bits of t to the exponent of p.
inline Vec8 AddExponent(Vec8 p, Vec8 t) {
  const __m256i exponent = _mm256_slli_epi32(_mm256_castps_si256(t.v), 23);
  return {_mm256_castsi256_ps(
      _mm256_add_epi32(_mm256_castps_si256(p.v), exponent))};
}

// These three comparisons are false if either argument is a NaN.
inline Vec8::Mask LessEqual(Vec8 a, Vec8 b) {
  return _mm256_cmp_ps(a.v, b.v, _CMP_LE_OQ);
}
inline Vec8::Mask Greater(Vec8 a, Vec8 b) {
  return _mm256_cmp_ps(a.v, b.v, _CMP_GT_OQ);
}
inline Vec8::Mask Less(Vec8 a, Vec8 b) {
  return _mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ);
}
inline Vec8::Mask IsNan(Vec8 a) {
  return _mm256_cmp_ps(a.v, a.v, _CMP_UNORD_Q);
}
inline Vec8 Select(Vec8::Mask mask, Vec8 yes, Vec8 no) {
  return {_mm256_blendv_ps(no.v, yes.v, mask)};
}

inline float Sum(Vec8 a) {
  const __m128 four =
      _mm_add_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

// These return the largest and the smallest lane. No lane may be a NaN.
inline float Largest(Vec8 a) {
  const __m128 four =
      _mm_max_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
inline float Smallest(Vec8 a) { return -Largest(Negate(a)); }

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SIMD_VEC8_H_
