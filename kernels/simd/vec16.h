// Sixteen floats in an AVX-512 register. Vec16 has the same functions as Vec8.
// Only files that are compiled for AVX-512 include this header.
#ifndef SFMAMBA_KERNELS_SIMD_VEC16_H_
#define SFMAMBA_KERNELS_SIMD_VEC16_H_

#include <immintrin.h>

#include <cstdint>

#include "kernels/base/bfloat16.h"

namespace sfmamba::kernels {
namespace {

struct Vec16 {
  static constexpr int kWidth = 16;
  using Mask = __mmask16;

  __m512 v;

  static Vec16 Set(float value) { return {_mm512_set1_ps(value)}; }
  static Vec16 Load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static Vec16 Load(const BFloat16* p) {
    const __m256i half =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    const __m512i word = _mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16);
    return {_mm512_castsi512_ps(word)};
  }
  static bool Any(Mask mask) { return mask != 0; }
  static bool All(Mask mask) { return mask == 0xffff; }
  // Writes a byte for each lane: 1 if `mask` is set for the lane, otherwise 0.
  static void StoreFlags(Mask mask, uint8_t* p) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                     _mm_maskz_set1_epi8(mask, 1));
  }
  void Store(float* p) const { _mm512_storeu_ps(p, v); }
  // Rounds to nearest, ties to even. A NaN stays a NaN. BFloat16(float) gives
  // the same bits.
  void Store(BFloat16* p) const {
    const __m512i word = _mm512_castps_si512(v);
    const __m512i high = _mm512_srli_epi32(word, 16);
    const __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
    const __m512i bias = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
    const __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(word, bias), 16);
    const __m512i quiet = _mm512_or_si512(high, _mm512_set1_epi32(0x40));
    const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    const __m512i half = _mm512_mask_blend_epi32(nan, rounded, quiet);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm512_cvtepi32_epi16(half));
  }
};

inline Vec16 operator+(Vec16 a, Vec16 b) { return {_mm512_add_ps(a.v, b.v)}; }
inline Vec16 operator-(Vec16 a, Vec16 b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline Vec16 operator*(Vec16 a, Vec16 b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline Vec16 operator/(Vec16 a, Vec16 b) { return {_mm512_div_ps(a.v, b.v)}; }

// These return a*b + c and a*b - c, rounded once.
inline Vec16 Fma(Vec16 a, Vec16 b, Vec16 c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
inline Vec16 Fms(Vec16 a, Vec16 b, Vec16 c) {
  return {_mm512_fmsub_ps(a.v, b.v, c.v)};
}

// If either argument is a NaN, these return the second argument.
inline Vec16 Min(Vec16 a, Vec16 b) { return {_mm512_min_ps(a.v, b.v)}; }
inline Vec16 Max(Vec16 a, Vec16 b) { return {_mm512_max_ps(a.v, b.v)}; }

inline Vec16 Abs(Vec16 a) { return {_mm512_abs_ps(a.v)}; }
inline Vec16 Negate(Vec16 a) {
  return {_mm512_xor_ps(_mm512_set1_ps(-0.0f), a.v)};
}

// Returns the larger of two values whose sign bits are 0. A NaN counts as
// larger than all numbers.
inline Vec16 MaxMagnitude(Vec16 a, Vec16 b) {
  return {_mm512_castsi512_ps(
      _mm512_max_epu32(_mm512_castps_si512(a.v), _mm512_castps_si512(b.v)))};
}

// Adds the integer in the lowest bits of t to the exponent of p.
inline Vec16 AddExponent(Vec16 p, Vec16 t) {
  const __m512i exponent = _mm512_slli_epi32(_mm512_castps_si512(t.v), 23);
  return {_mm512_castsi512_ps(
      _mm512_add_epi32(_mm512_castps_si512(p.v), exponent))};
}

// These three comparisons are false if either argument is a NaN.
inline Vec16::Mask LessEqual(Vec16 a, Vec16 b) {
  return _mm512_cmp_ps_mask(a.v, b.v, _CMP_LE_OQ);
}
inline Vec16::Mask Greater(Vec16 a, Vec16 b) {
  return _mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ);
}
inline Vec16::Mask Less(Vec16 a, Vec16 b) {
  return _mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ);
}
inline Vec16::Mask IsNan(Vec16 a) {
  return _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q);
}
inline Vec16 Select(Vec16::Mask mask, Vec16 yes, Vec16 no) {
  return {_mm512_mask_blend_ps(mask, no.v, yes.v)};
}

inline float Sum(Vec16 a) { return _mm512_reduce_add_ps(a.v); }

// These return the largest and the smallest lane. No lane may be a NaN.
inline float Largest(Vec16 a) { return _mm512_reduce_max_ps(a.v); }
inline float Smallest(Vec16 a) { return _mm512_reduce_min_ps(a.v); }

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SIMD_VEC16_H_
