// Packs bf16 matrices [out, in] that change with every product, such as keys
// and values of attention. Each step packs the values of two inputs for 16 or
// 32 outputs.
#include <immintrin.h>

#include <algorithm>
#include <cstdint>

#include "kernels/linear/packed_gemm.h"

namespace sfmamba::kernels {
namespace {

constexpr int64_t kLanes = 16, kPanel = 2 * kLanes;

__mmask32 First(int64_t count) {
  return count >= kPanel ? ~__mmask32{0} : (__mmask32{1} << count) - 1;
}

// Packs the values of inputs k and k + 1 for `columns` outputs. The values of
// one input for all outputs are contiguous in memory. `second` is false if
// there is no input k + 1. Zeros are packed in its place.
void PackRows(const BFloat16* from, int64_t in_stride, bool second,
              int64_t columns, BFloat16* packed) {
  // The source of each value in the first half of the packed pairs. Indices
  // below 32 are outputs of input k. The other indices are outputs of input
  // k + 1.
  alignas(64) static constexpr uint16_t kFirstHalf[] = {
      0, 32, 1, 33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
      8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
  const __m512i first_half = _mm512_load_si512(kFirstHalf);
  const __m512i second_half =
      _mm512_add_epi16(first_half, _mm512_set1_epi16(kLanes));
  const __mmask32 mask = First(columns);
  const __m512i a = _mm512_maskz_loadu_epi16(mask, from);
  const __m512i b =
      _mm512_maskz_loadu_epi16(second ? mask : 0, from + in_stride);
  _mm512_storeu_si512(packed, _mm512_permutex2var_epi16(a, first_half, b));
  _mm512_storeu_si512(packed + kPanel,
                      _mm512_permutex2var_epi16(a, second_half, b));
}

// Packs the values of inputs k and k + 1 for `columns` outputs. The values of
// the two inputs for one output are adjacent in memory.
void PackColumns(const BFloat16* from, int64_t out_stride, int64_t columns,
                 BFloat16* packed) {
  const __m512i offsets = _mm512_mullo_epi32(
      _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
      _mm512_set1_epi32(static_cast<int>(out_stride)));
  const __mmask32 mask = First(columns);
  for (int64_t o = 0; o < kPanel; o += kLanes) {
    const __m512i pairs = _mm512_mask_i32gather_epi32(
        _mm512_setzero_si512(), static_cast<__mmask16>(mask >> o), offsets,
        from + o * out_stride, sizeof(BFloat16));
    _mm512_storeu_si512(packed + 2 * o, pairs);
  }
}

// Packs the values of the last input if the number of inputs is odd. Pairs each
// value with a zero.
void PackLastColumn(const BFloat16* from, int64_t out_stride, int64_t columns,
                    BFloat16* packed) {
  std::fill_n(packed, 2 * kPanel, BFloat16());
  for (int64_t o = 0; o < columns; ++o) packed[2 * o] = from[o * out_stride];
}

}  // namespace

void PackWeightsAvx512(const Bf16WeightMatrix& weights, int64_t in, int64_t out,
                       BFloat16* packed) {
  for (int64_t first = 0; first < out; first += kPanel) {
    const int64_t columns = std::min(kPanel, out - first);
    const BFloat16* from = weights.values + first * weights.out_stride;
    for (int64_t k = 0; k < in; k += 2, packed += 2 * kPanel) {
      const BFloat16* pair = from + k * weights.in_stride;
      const bool second = k + 1 < in;
      if (weights.out_stride == 1) {
        PackRows(pair, weights.in_stride, second, columns, packed);
      } else if (second) {
        PackColumns(pair, weights.out_stride, columns, packed);
      } else {
        PackLastColumn(pair, weights.out_stride, columns, packed);
      }
    }
  }
}

}  // namespace sfmamba::kernels
