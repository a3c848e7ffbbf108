// Sixteen 32-bit integers in an AVX-512 register. Ints16 has the same functions
// as Ints8. Only files that are compiled for AVX512-VNNI include this header.
#ifndef SFMAMBA_KERNELS_SIMD_INTS16_H_
#define SFMAMBA_KERNELS_SIMD_INTS16_H_

#include <immintrin.h>

#include <cstdint>

#include "kernels/simd/vec16.h"

namespace sfmamba::kernels {
namespace {

struct Ints16 {
  using Floats = Vec16;
  static constexpr int kWidth = 16;

  __m512i v;

  static Ints16 Zero() { return {_mm512_setzero_si512()}; }
  static Ints16 Load(const void* p) { return {_mm512_loadu_si512(p)}; }
  void Store(int32_t* p) const { _mm512_storeu_si512(p, v); }
  // Sets each lane to the four bytes at p.
  static Ints16 Repeat(const uint8_t* p) {
    return {_mm512_set1_epi32(*reinterpret_cast<const int32_t*>(p))};
  }
  // Rounds to the nearest integers, ties to even.
  static Ints16 Round(Vec16 x) { return {_mm512_cvtps_epi32(x.v)}; }
  // Adds 128 to each lane and writes it as a byte. No lane may be outside
  // [-128, 127].
  void StoreBytes(uint8_t* p) const {
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(p),
        _mm_xor_si128(_mm512_cvtepi32_epi8(v), _mm_set1_epi8(-128)));
  }
};

// Multiplies the bytes of x by the bytes of w, and adds the four products of
// each lane to this lane of `sums`. Bytes of x are unsigned, bytes of w are
// signed.
inline Ints16 AddProducts(Ints16 sums, Ints16 x, Ints16 w) {
  return {_mm512_dpbusd_epi32(sums.v, x.v, w.v)};
}
inline Ints16 operator-(Ints16 a, Ints16 b) {
  return {_mm512_sub_epi32(a.v, b.v)};
}
inline Vec16 ToFloats(Ints16 a) { return {_mm512_cvtepi32_ps(a.v)}; }

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SIMD_INTS16_H_
