// Rows of bf16 values in vectors, for files that are compiled for AVX512-BF16.
#ifndef SFMAMBA_KERNELS_LINEAR_BF16_ROWS_H_
#define SFMAMBA_KERNELS_LINEAR_BF16_ROWS_H_

#include <immintrin.h>

#include <cstdint>

#include "kernels/base/bfloat16.h"

namespace sfmamba::kernels {
namespace {

// Floats, and bf16 values, in a vector.
constexpr int64_t kLanes = 16, kBf16Lanes = 2 * kLanes;

inline __m512i Rounded(__m512 low, __m512 high) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
}

// The first `count` values of a vector, at most all.
inline __mmask32 First(int64_t count) {
  return count >= kBf16Lanes ? ~__mmask32{0} : (__mmask32{1} << count) - 1;
}

// Reads `x` where `mask` is set, rounded; zeros elsewhere.
inline __m512i LoadRounded(__mmask32 mask, const float* x) {
  return Rounded(_mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), x),
                 _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> kLanes),
                                       x + kLanes));
}
inline __m512i LoadRounded(__mmask32 mask, const BFloat16* x) {
  return _mm512_maskz_loadu_epi16(mask, x);
}

// Writes `count` values in bf16, filled up with zeros to whole vectors.
template <typename T>
void RoundRow(const T* x, int64_t count, BFloat16* to) {
  for (int64_t k = 0; k < count; k += kBf16Lanes) {
    _mm512_storeu_si512(to + k, LoadRounded(First(count - k), x + k));
  }
}

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_LINEAR_BF16_ROWS_H_
