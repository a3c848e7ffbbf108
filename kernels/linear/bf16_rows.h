// Rounds rows of floats to bf16 with vector instructions. Only files that are
// compiled for AVX512-BF16 include this header.
#ifndef SFMAMBA_KERNELS_LINEAR_BF16_ROWS_H_
#define SFMAMBA_KERNELS_LINEAR_BF16_ROWS_H_

#include <immintrin.h>

#include <cstdint>

#include "kernels/base/bfloat16.h"

namespace sfmamba::kernels {
namespace {

// The number of floats, and the number of bf16 values, in a vector.
constexpr int64_t kLanes = 16, kBf16Lanes = 2 * kLanes;

inline __m512i Rounded(__m512 low, __m512 high) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
}

// Returns a mask of the first `count` bf16 values of a vector. If `count` is 32
// or more, the mask has all 32 values.
inline __mmask32 First(int64_t count) {
  return count >= kBf16Lanes ? ~__mmask32{0} : (__mmask32{1} << count) - 1;
}

// Loads the values of `x` that are set in `mask`, rounded to bf16. Sets the
// others to 0.
inline __m512i LoadRounded(__mmask32 mask, const float* x) {
  return Rounded(_mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), x),
                 _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> kLanes),
                                       x + kLanes));
}
inline __m512i LoadRounded(__mmask32 mask, const BFloat16* x) {
  return _mm512_maskz_loadu_epi16(mask, x);
}

// Writes `count` values of x to `to`, rounded to bf16. Fills the last vector
// with zeros, so `to` must have room for whole vectors.
template <typename T>
void RoundRow(const T* x, int64_t count, BFloat16* to) {
  for (int64_t k = 0; k < count; k += kBf16Lanes) {
    _mm512_storeu_si512(to + k, LoadRounded(First(count - k), x + k));
  }
}

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_LINEAR_BF16_ROWS_H_
