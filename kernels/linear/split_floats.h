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
// Values in a tile.
constexpr int64_t kTile = kTileRows * kStepInputs;
// Those of a step: a part has a tile for each of two tiles of rows, or for each
// half of a panel.
constexpr int64_t kPartTiles = 2 * kTile;
constexpr int64_t kStepTiles = kParts * kPartTiles;

// Writes 32 values, the parts `distance` apart. Values i and i + 16 lie side by
// side. A part is the first 8 bits of what is left, so the third leaves none.
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

// Splits `count` values of a row, filled up with zeros to whole steps.
inline void SplitRow(const float* x, int64_t count, BFloat16* to) {
  for (int64_t k = 0; k < count; k += kStepInputs, to += kStepTiles) {
    const __mmask32 mask = First(count - k);
    SplitLine(_mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), x + k),
              _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> kLanes),
                                    x + k + kLanes),
              kPartTiles, to);
  }
}

// How often AddSplitProducts() calls beside.Step().
constexpr int64_t kCallsAStep = 6;

// Adds the products of one step of one or two tiles of rows, of which `x` is
// the first, with one or two tiles of weights.
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
