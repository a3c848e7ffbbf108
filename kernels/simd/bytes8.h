// Bytes8 holds 32 bytes in an AVX2 register. The 8 in the name is the number of
// 32-bit integers that fit into the register. The register has two parts of 16
// bytes. The functions below treat the bytes as integers of 8, 16 or 32 bits.
// Only files that are compiled for AVX2 include this header.
#ifndef SFMAMBA_KERNELS_SIMD_BYTES8_H_
#define SFMAMBA_KERNELS_SIMD_BYTES8_H_

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace sfmamba::kernels {
namespace {

struct Bytes8 {
  static constexpr int kBytes = 32;
  static constexpr int kParts = 2;

  __m256i v;

  static Bytes8 Zero() { return {_mm256_setzero_si256()}; }
  // Sets each 32-bit integer to `value`.
  static Bytes8 Set32(int32_t value) { return {_mm256_set1_epi32(value)}; }
  static Bytes8 Load(const uint8_t* p) {
    return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))};
  }
  // Loads 16 bytes from p[i] + offset into each part i.
  static Bytes8 LoadParts(const uint8_t* const* p, size_t offset) {
    return {_mm256_inserti128_si256(_mm256_castsi128_si256(Part(p[0] + offset)),
                                    Part(p[1] + offset), 1)};
  }
  // Loads the 16 bytes at p into every part.
  static Bytes8 Repeat(const uint8_t* p) {
    return {_mm256_broadcastsi128_si256(Part(p))};
  }
  void Store(uint8_t* p) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v);
  }
  void StoreParts(uint8_t* const* p, size_t offset) const {
    StorePart(_mm256_castsi256_si128(v), p[0] + offset);
    StorePart(_mm256_extracti128_si256(v, 1), p[1] + offset);
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
inline Bytes8 Shuffle(Bytes8 a, Bytes8 order) {
  return {_mm256_shuffle_epi8(a.v, order.v)};
}

// These return the bytes of a and b alternately (a0, b0, a1, b1, ...). ZipLow()
// takes the lower half of each part, ZipHigh() the upper half.
inline Bytes8 ZipLow(Bytes8 a, Bytes8 b) {
  return {_mm256_unpacklo_epi8(a.v, b.v)};
}
inline Bytes8 ZipHigh(Bytes8 a, Bytes8 b) {
  return {_mm256_unpackhi_epi8(a.v, b.v)};
}

// Returns a[2i] * b[2i] + a[2i + 1] * b[2i + 1] for each i, as 32-bit integers.
// a and b have 16-bit integers.
inline Bytes8 MultiplyAddPairs(Bytes8 a, Bytes8 b) {
  return {_mm256_madd_epi16(a.v, b.v)};
}

// Adds 32-bit integers, modulo 2^32.
inline Bytes8 Add32(Bytes8 a, Bytes8 b) { return {_mm256_add_epi32(a.v, b.v)}; }
template <int kBits>
inline Bytes8 ShiftLeft32(Bytes8 a) {
  return {_mm256_slli_epi32(a.v, kBits)};
}
// Shifts each 32-bit integer and keeps its sign.
template <int kBits>
inline Bytes8 ShiftRight32(Bytes8 a) {
  return {_mm256_srai_epi32(a.v, kBits)};
}

// Limits 32-bit integers to [0, 255] and returns them as bytes. Each part of
// the result has the integers of the same part of a, then of b, c and d. The
// magnitude of each integer must be below 2^15.
inline Bytes8 ToBytes(Bytes8 a, Bytes8 b, Bytes8 c, Bytes8 d) {
  return {_mm256_packus_epi16(_mm256_packs_epi32(a.v, b.v),
                              _mm256_packs_epi32(c.v, d.v))};
}

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SIMD_BYTES8_H_
