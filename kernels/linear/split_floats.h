// Splits floats into three bf16 values and multiplies these values with AMX
// tiles. Only files that are compiled for AMX include this header.
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
// The number of bf16 values in a tile.
constexpr int64_t kTile = kTileRows * kStepInputs;
// The number of values in one step, for one part and for all parts. In each
// step, a part has two tiles. They are two tiles of rows, or the two halves of
// a panel.
constexpr int64_t kPartTiles = 2 * kTile;
constexpr int64_t kStepTiles = kParts * kPartTiles;

// Splits the 32 values in `low` and `high` into parts and writes them to `to`,
// one part `distance` values after the other. In a part, values i and i + 16
// are adjacent. Each part has the next 8 bits of the significand, so nothing is
// left after the third part.
inline void SplitLine(__m512 low, __m512 high, int64_t distance, BFloat16* to) {
  const __m512i mask = _mm512_set1_epi32(static_cast<int>(0xffff0000));
  for (int64_t i = 0; i < kParts; ++i, to += distance) {
    const __m512i low_bits = _mm512_castps_si512(low);
    const __m512i high_bits = _mm512_castps_si512(high);
    constexpr int kFirstOrSecondAndThird = 0xf8;
    _mm512_store_si512(
        to, _mm512_ternarylogic_epi32(_mm512_srli_epi32(low_bits, 16),
                                      high_bits, mask, kFirstOrSecondAndThird));
    if (i + 1 == kParts) break;
    low = _mm512_sub_ps(low,
                        _mm512_castsi512_ps(_mm512_and_si512(low_bits, mask)));
    high = _mm512_sub_ps(
        high, _mm512_castsi512_ps(_mm512_and_si512(high_bits, mask)));
  }
}

// Splits `count` values of a row. Fills the last step with zeros.
inline void SplitRow(const float* x, int64_t count, BFloat16* to) {
  for (int64_t k = 0; k < count; k += kStepInputs, to += kStepTiles) {
    const __mmask32 mask = First(count - k);
    SplitLine(_mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), x + k),
              _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> kLanes),
                                    x + k + kLanes),
              kPartTiles, to);
  }
}

// The number of times that AddSplitProducts() calls beside.Step().
constexpr int64_t kCallsAStep = 6;

// Adds the products of one step to the tiles of sums. `x` has kRows tiles of
// inputs and `weights` has kColumns tiles of weights, all split into parts.
template <int kRows, int kColumns, typename Beside>
void AddSplitProducts(const BFloat16* x, const BFloat16* weights,
                      const Beside& beside) {
  const auto load_x = [&](int64_t i) __attribute__((always_inline)) {
    const BFloat16* const from = x + i * kPartTiles;
    _tile_loadd(4, from, kTileRowBytes);
    if (kRows == 2) _tile_loadd(5, from + kTile, kTileRowBytes);
  };
  const auto load_weights = [&](int64_t i) __attribute__((always_inline)) {
    const BFloat16* const from = weights + i * kPartTiles;
    _tile_loadd(6, from, kTileRowBytes);
    if (kColumns == 2) _tile_loadd(7, from + kTile, kTileRowBytes);
  };
  const auto multiply = [&]() __attribute__((always_inline)) {
    _tile_dpbf16ps(0, 4, 6);
    if (kColumns == 2) _tile_dpbf16ps(1, 4, 7);
    if (kRows == 2) _tile_dpbf16ps(2, 5, 6);
    if (kRows == 2 && kColumns == 2) _tile_dpbf16ps(3, 5, 7);
    beside.Step();
  };
  // This order needs few loads: from one product to the next, only x or only
  // the weights change.
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
