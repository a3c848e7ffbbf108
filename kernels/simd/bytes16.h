// Bytes16 holds 64 bytes in an AVX-512 register. The 16 in the name is the
// number of 32-bit integers that fit into the register. The register has four
// parts of 16 bytes. Bytes16 has the same functions as Bytes8. Only files that
// are compiled for AVX-512 include this header.
#ifndef SFMAMBA_KERNELS_SIMD_BYTES16_H_
#define SFMAMBA_KERNELS_SIMD_BYTES16_H_

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace sfmamba::kernels {
namespace {

struct Bytes16 {
  static constexpr int kBytes = 64;
  static constexpr int kParts = 4;

  __m512i v;

  static Bytes16 Zero() { return {_mm512_setzero_si512()}; }
  // Sets each 32-bit integer to `value`.
  static Bytes16 Set32(int32_t value) { return {_mm512_set1_epi32(value)}; }
  static Bytes16 Load(const uint8_t* p) { return {_mm512_loadu_si512(p)}; }
  // Loads 16 bytes from p[i] + offset into each part i.
  static Bytes16 LoadParts(const uint8_t* const* p, size_t offset) {
    const __m256i low = _mm256_inserti128_si256(
        _mm256_castsi128_si256(Part(p[0] + offset)), Part(p[1] + offset), 1);
    const __m256i high = _mm256_inserti128_si256(
        _mm256_castsi128_si256(Part(p[2] + offset)), Part(p[3] + offset), 1);
    return {_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1)};
  }
  // Loads the 16 bytes at p into every part.
  static Bytes16 Repeat(const uint8_t* p) {
    return {_mm512_broadcast_i32x4(Part(p))};
  }
  void Store(uint8_t* p) const { _mm512_storeu_si512(p, v); }
  void StoreParts(uint8_t* const* p, size_t offset) const {
    StorePart(_mm512_castsi512_si128(v), p[0] + offset);
    StorePart(_mm512_extracti32x4_epi32(v, 1), p[1] + offset);
    StorePart(_mm512_extracti32x4_epi32(v, 2), p[2] + offset);
    StorePart(_mm512_extracti32x4_epi32(v, 3), p[3] + offset);
  }

 private:
  static __m128i Part(const uint8_t* p) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  }
  static void StorePart(__m128i part, uint8_t* p) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), part);
  }
};

// Reorders the bytes within each part. In each part, byte i of the result is
// byte order[i] % 16 of a. It is 0 if order[i] is at least 128.
inline Bytes16 Shuffle(Bytes16 a, Bytes16 order) {
  return {_mm512_shuffle_epi8(a.v, order.v)};
}

// These return the bytes of a and b alternately (a0, b0, a1, b1, ...). ZipLow()
// takes the lower half of each part, ZipHigh() the upper half.
inline Bytes16 ZipLow(Bytes16 a, Bytes16 b) {
  return {_mm512_unpacklo_epi8(a.v, b.v)};
}
inline Bytes16 ZipHigh(Bytes16 a, Bytes16 b) {
  return {_mm512_unpackhi_epi8(a.v, b.v)};
}

// Returns a[2i] * b[2i] + a[2i + 1] * b[2i + 1] for each i, as 32-bit integers.
// a and b have 16-bit integers.
inline Bytes16 MultiplyAddPairs(Bytes16 a, Bytes16 b) {
  return {_mm512_madd_epi16(a.v, b.v)};
}

// Adds 32-bit integers, modulo 2^32.
inline Bytes16 Add32(Bytes16 a, Bytes16 b) {
  return {_mm512_add_epi32(a.v, b.v)};
}
template <int kBits>
inline Bytes16 ShiftLeft32(Bytes16 a) {
  return {_mm512_slli_epi32(a.v, kBits)};
}
// Shifts each 32-bit integer and keeps its sign.
template <int kBits>
inline Bytes16 ShiftRight32(Bytes16 a) {
  return {_mm512_srai_epi32(a.v, kBits)};
}

// Limits 32-bit integers to [0, 255] and returns them as bytes. Each part of
// the result has the integers of the same part of a, then of b, c and d. The
// magnitude of each integer must be below 2^15.
inline Bytes16 ToBytes(Bytes16 a, Bytes16 b, Bytes16 c, Bytes16 d) {
  return {_mm512_packus_epi16(_mm512_packs_epi32(a.v, b.v),
                              _mm512_packs_epi32(c.v, d.v))};
}

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SIMD_BYTES16_H_
