// What becomes of the sums of tiles, for files that are compiled for AMX.
#ifndef SFMAMBA_KERNELS_LINEAR_AMX_RESULTS_H_
#define SFMAMBA_KERNELS_LINEAR_AMX_RESULTS_H_

#include <immintrin.h>

#include <cstdint>

#include "kernels/base/bfloat16.h"
#include "kernels/linear/amx_tiles.h"
#include "kernels/simd/vec16.h"

namespace sfmamba::kernels {
namespace {

constexpr int64_t kLanes = 16;

inline __m512i Rounded(__m512 low, __m512 high) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
}

// The first `count` of a panel's outputs or of a step's inputs, at most all.
inline __mmask32 First(int64_t count) {
  return count >= kPanel ? ~__mmask32{0} : (__mmask32{1} << count) - 1;
}

// Writes `count` values in bf16, filled up with zeros to whole steps.
inline void RoundRow(const float* x, int64_t count, BFloat16* to) {
  for (int64_t k = 0; k < count; k += kStepInputs) {
    const __mmask32 mask = First(count - k);
    _mm512_storeu_si512(
        to + k,
        Rounded(_mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), x + k),
                _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> kLanes),
                                      x + k + kLanes)));
  }
}
inline void RoundRow(const BFloat16* x, int64_t count, BFloat16* to) {
  for (int64_t k = 0; k < count; k += kStepInputs) {
    _mm512_storeu_si512(to + k,
                        _mm512_maskz_loadu_epi16(First(count - k), x + k));
  }
}

// What results are.
enum class Result { kSet, kAdd, kRounded };

// The sums of a panel and where their results go: to y or, if it is not null,
// to y_bf16.
struct Sums {
  const float* values;  // [rows, kPanel]
  int64_t columns;      // The first ones count.
  Vec16 low_bias, high_bias;
  float* y;  // Of the first row to be finished. Rows are y_stride apart.
  BFloat16* y_bf16;
  int64_t y_stride;

  // Results begin at `offset` of the array that is not null.
  void SetResults(float* array, BFloat16* rounded, int64_t offset) {
    y = rounded == nullptr ? array + offset : nullptr;
    y_bf16 = rounded == nullptr ? nullptr : rounded + offset;
  }

  // `from` may be null: no bias. Adding -0 leaves even the sign of a zero.
  void SetBias(const float* from) {
    low_bias = high_bias = Vec16::Set(-0.0f);
    if (from == nullptr) return;
    const __mmask32 mask = First(columns);
    low_bias.v = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), from);
    high_bias.v = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> kLanes),
                                        from + kLanes);
  }
};

// Writes activation(sum + bias) for rows [begin, end). With kWhole all columns
// of the panel count.
template <Result kResult, bool kWhole, typename Activation>
void FinishRows(const Sums& sums, int64_t begin, int64_t end,
                Activation activation) {
  const __mmask32 mask = First(sums.columns);
  const __mmask16 low_mask = static_cast<__mmask16>(mask);
  const __mmask16 high_mask = static_cast<__mmask16>(mask >> kLanes);
  for (int64_t r = begin; r < end; ++r) {
    const float* from = sums.values + r * kPanel;
    Vec16 low = activation(Vec16::Load(from) + sums.low_bias);
    Vec16 high = activation(Vec16::Load(from + kLanes) + sums.high_bias);
    if (kResult == Result::kRounded) {
      BFloat16* y = sums.y_bf16 + (r - begin) * sums.y_stride;
      if (kWhole) {
        _mm512_storeu_si512(y, Rounded(low.v, high.v));
      } else {
        _mm512_mask_storeu_epi16(y, mask, Rounded(low.v, high.v));
      }
      continue;
    }
    float* y = sums.y + (r - begin) * sums.y_stride;
    if (kWhole) {
      if (kResult == Result::kAdd) {
        low = Vec16::Load(y) + low;
        high = Vec16::Load(y + kLanes) + high;
      }
      low.Store(y);
      high.Store(y + kLanes);
    } else {
      if (kResult == Result::kAdd) {
        low.v = _mm512_add_ps(_mm512_maskz_loadu_ps(low_mask, y), low.v);
        high.v =
            _mm512_add_ps(_mm512_maskz_loadu_ps(high_mask, y + kLanes), high.v);
      }
      _mm512_mask_storeu_ps(y, low_mask, low.v);
      _mm512_mask_storeu_ps(y + kLanes, high_mask, high.v);
    }
  }
}

template <Result kResult, typename Activation>
void FinishRows(const Sums& sums, int64_t begin, int64_t end,
                Activation activation) {
  if (sums.columns == kPanel) {
    FinishRows<kResult, true>(sums, begin, end, activation);
  } else {
    FinishRows<kResult, false>(sums, begin, end, activation);
  }
}

struct NoActivation {
  Vec16 operator()(Vec16 v) const { return v; }
};

// NaN stays NaN.
struct Clamped {
  Vec16 operator()(Vec16 v) const {
    return Min(Vec16::Set(high), Max(Vec16::Set(low), v));
  }
  float low, high;
};

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_LINEAR_AMX_RESULTS_H_
