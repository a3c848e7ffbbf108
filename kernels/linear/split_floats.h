// Floats that are split into three bf16 values, and their products by tiles,
// for files that are compiled for AMX.
#ifndef SFMAMBA_KERNELS_LINEAR_SPLIT_FLOATS_H_
#define SFMAMBA_KERNELS_LINEAR_SPLIT_FLOATS_H_

#include <immintrin.h>

#include <cstdint>

#include "kernels/base/bfloat16.h"
#include "kernels/linear/amx_results.h"
#include "kernels/linear/amx_tiles.h"

namespace sfmamba::kernels {
namespace {

constexpr int64_t kParts = 3;
// A tile of a step's inputs, and a step's of all parts.
constexpr int64_t kPartInputs = kTileRows * kStepInputs;
constexpr int64_t kSplitStepInputs = kParts * kPartInputs;
// A panel's weights for one step.
constexpr int64_t kSplitStepWeights = kParts * kStepWeights;

// Two vectors' parts that are left.
struct Rest {
  // Returns the nearest bf16 values, low before high, and takes them off.
  __m512i Take() { return TakeOff(Rounded(low, high)); }

  // The same for whole floats, of which the largest would become infinite.
  __m512i TakeFirst() {
    const __m512 largest = _mm512_set1_ps(kLargest);
    const __m512 least = _mm512_set1_ps(-kLargest);
    // NaN stays NaN.
    return TakeOff(Rounded(_mm512_min_ps(largest, _mm512_max_ps(least, low)),
                           _mm512_min_ps(largest, _mm512_max_ps(least, high))));
  }

  __m512 low, high;

 private:
  static constexpr float kLargest = 0x1.fep127f;  // Of bf16.

  __m512i TakeOff(__m512i part) {
    low = _mm512_sub_ps(low, Widened(_mm512_castsi512_si256(part)));
    high = _mm512_sub_ps(high, Widened(_mm512_extracti64x4_epi64(part, 1)));
    return part;
  }

  static __m512 Widened(__m256i values) {
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(values), 16));
  }
};

// Splits `count` values, filled up with zeros to whole steps. Parts are `part`
// values apart, steps `step`.
inline void SplitRow(const float* x, int64_t count, int64_t part, int64_t step,
                     BFloat16* to) {
  for (int64_t k = 0; k < count; k += kStepInputs, to += step) {
    const __mmask32 mask = First(count - k);
    Rest rest{_mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), x + k),
              _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> kLanes),
                                    x + k + kLanes)};
    _mm512_storeu_si512(to, rest.TakeFirst());
    _mm512_storeu_si512(to + part, rest.Take());
    _mm512_storeu_si512(to + 2 * part, rest.Take());
  }
}

// Adds the products of one step: x has rows `stride` values apart and parts
// `part` values apart, and weights are a step's of a panel.
template <int kRows, int kColumns>
void AddSplitProducts(const TwoTiles<const BFloat16>& x, int64_t stride,
                      int64_t part, const BFloat16* weights) {
  const int64_t row_bytes = stride * sizeof(BFloat16);
  const auto load_x = [&](int64_t i) __attribute__((always_inline)) {
    _tile_loadd(4, x.first + i * part, row_bytes);
    if (kRows == 2) _tile_loadd(5, x.second + i * part, row_bytes);
  };
  const auto load_weights = [&](int64_t i) __attribute__((always_inline)) {
    const BFloat16* const from = weights + i * kStepWeights;
    _tile_loadd(6, from, kPanelBytes);
    if (kColumns == 2) _tile_loadd(7, from + kPanel, kPanelBytes);
  };
  const auto multiply = [&]() __attribute__((always_inline)) {
    _tile_dpbf16ps(0, 4, 6);
    if (kColumns == 2) _tile_dpbf16ps(1, 4, 7);
    if (kRows == 2) _tile_dpbf16ps(2, 5, 6);
    if (kRows == 2 && kColumns == 2) _tile_dpbf16ps(3, 5, 7);
  };
  // Few loads: from one product to the next only x or only weights change.
  load_x(2);
  load_weights(0);
  multiply();
  load_x(1);
  multiply();
  load_weights(1);
  multiply();
  load_x(0);
  multiply();
  load_weights(2);
  multiply();
  load_weights(0);
  multiply();
}

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_LINEAR_SPLIT_FLOATS_H_
