// Eight 32-bit integers in an AVX2 register. Only files that are compiled for
// AVX-VNNI, or for AVX512-VNNI with VL, include this header.
#ifndef SFMAMBA_KERNELS_SIMD_INTS8_H_
#define SFMAMBA_KERNELS_SIMD_INTS8_H_

#include <immintrin.h>

#include <cstdint>

#include "kernels/simd/vec8.h"

namespace sfmamba::kernels {
namespace {

struct Ints8 {
  using Floats = Vec8;
  static constexpr int kWidth = 8;

  __m256i v;

  static Ints8 Zero() { return {_mm256_setzero_si256()}; }
  static Ints8 Load(const void* p) {
    return {_mm256_loadu_si256(static_cast<const __m256i*>(p))};
  }
  void Store(int32_t* p) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v);
  }
  // Sets each lane to the four bytes at p.
  static Ints8 Repeat(const uint8_t* p) {
    return {_mm256_set1_epi32(*reinterpret_cast<const int32_t*>(p))};
  }
  // Rounds to the nearest integers, ties to even.
  static Ints8 Round(Vec8 x) { return {_mm256_cvtps_epi32(x.v)}; }
  // Adds 128 to each lane and writes it as a byte. No lane may be outside
  // [-128, 127].
  void StoreBytes(uint8_t* p) const {
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(v),
                                          _mm256_extracti128_si256(v, 1));
    const __m128i bytes = _mm_packs_epi16(words, words);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p),
                     _mm_xor_si128(bytes, _mm_set1_epi8(-128)));
  }
};

// Multiplies the bytes of x by the bytes of w, and adds the four products of
// each lane to this lane of `sums`. Bytes of x are unsigned, bytes of w are
// signed.
inline Ints8 AddProducts(Ints8 sums, Ints8 x, Ints8 w) {
  return {_mm256_dpbusd_epi32(sums.v, x.v, w.v)};
}
inline Ints8 operator-(Ints8 a, Ints8 b) {
  return {_mm256_sub_epi32(a.v, b.v)};
}
inline Vec8 ToFloats(Ints8 a) { return {_mm256_cvtepi32_ps(a.v)}; }

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SIMD_INTS8_H_
