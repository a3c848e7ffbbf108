// Adds the bias to the sums of AMX tiles, applies the activation, and stores
// the results. Only files that are compiled for AMX include this header.
#ifndef SFMAMBA_KERNELS_LINEAR_AMX_RESULTS_H_
#define SFMAMBA_KERNELS_LINEAR_AMX_RESULTS_H_

#include <immintrin.h>

#include <algorithm>
#include <cstdint>

#include "kernels/base/bfloat16.h"
#include "kernels/linear/amx_tiles.h"
#include "kernels/linear/bf16_rows.h"
#include "kernels/simd/vec16.h"

namespace sfmamba::kernels {
namespace {

// How Results stores a sum, to which the bias has been added:
//   kSet      y = activation(sum)
//   kAdd      y = activation(y + sum)
//   kRounded  y_bf16 = activation(sum), rounded to bf16
enum class Result { kSet, kAdd, kRounded };

// The sums of up to 32 rows (two tiles) and 32 outputs (one panel), and the
// places in y to which their results are written.
struct Sums {
  struct Row {
    int64_t from;  // The index of the row in `values`.
    int64_t to;    // The index in y of the row's first result.
  };

  TwoTiles<float> tiles() { return {values, values + kTileRows * kPanel}; }

  void Clear(int64_t outputs, const float* from) {
    columns = outputs;
    row_count = 0;
    SetBias(from);
  }
  void AddRow(int64_t from, int64_t to) { rows[row_count++] = {from, to}; }

  alignas(64) float values[2 * kTileRows * kPanel];
  int64_t columns;  // The number of outputs. Other columns are padding.
  Vec16 low_bias, high_bias;
  int64_t row_count = 0;
  Row rows[2 * kTileRows];

 private:
  // Loads the bias at `from`. If `from` is null, there is no bias and -0 is
  // added instead. Adding -0 does not even change the sign of a zero.
  void SetBias(const float* from) {
    low_bias = high_bias = Vec16::Set(-0.0f);
    if (from == nullptr) return;
    const __mmask32 mask = First(columns);
    low_bias.v = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), from);
    high_bias.v = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> kLanes),
                                        from + kLanes);
  }
};

// Turns sums into results: adds the bias, applies the activation and stores the
// results as kResult says.
//
// There are two buffers of sums. Next() is the buffer that the tiles will write
// next. The other buffer has the previous sums. While the tiles compute the
// sums for Next(), calls of Step() finish the rows of the previous sums. So the
// tiles and the vector instructions run in parallel. The destructor finishes
// the last sums.
template <Result kResult, typename Activation>
class Results {
 public:
  Results(float* y, BFloat16* y_bf16, Activation activation)
      : y_(y), y_bf16_(y_bf16), activation_(activation) {}
  ~Results() { FinishRows(2 * kTileRows); }
  Results(const Results&) = delete;
  Results& operator=(const Results&) = delete;

  Sums& Next() { return sums_[next_]; }
  // Call this before the tiles compute the sums for Next(). While they compute,
  // call Step() about `steps` times. Each of these calls finishes an equal part
  // of the previous sums.
  void Start(int64_t steps) {
    rows_a_step_ = (Before().row_count - finished_ + steps - 1) / steps;
  }
  void Step() { FinishRows(rows_a_step_); }
  // Call this when the sums in Next() are complete. Finishes the remaining rows
  // of the previous sums, then swaps the two buffers.
  void Stop() {
    FinishRows(2 * kTileRows);
    next_ = 1 - next_;
    finished_ = 0;
  }

 private:
  Sums& Before() { return sums_[1 - next_]; }

  void FinishRows(int64_t count) {
    const Sums& sums = Before();
    const int64_t end = std::min(finished_ + count, sums.row_count);
    for (; finished_ < end; ++finished_) Finish(sums, sums.rows[finished_]);
  }

  void Finish(const Sums& sums, const Sums::Row& row) {
    const float* from = sums.values + row.from * kPanel;
    Vec16 low = Vec16::Load(from) + sums.low_bias;
    Vec16 high = Vec16::Load(from + kLanes) + sums.high_bias;
    const __mmask32 mask = First(sums.columns);
    const __mmask16 low_mask = static_cast<__mmask16>(mask);
    const __mmask16 high_mask = static_cast<__mmask16>(mask >> kLanes);
    float* const y = y_ + row.to;
    if (kResult == Result::kAdd) {
      low.v = _mm512_add_ps(_mm512_maskz_loadu_ps(low_mask, y), low.v);
      high.v =
          _mm512_add_ps(_mm512_maskz_loadu_ps(high_mask, y + kLanes), high.v);
    }
    low = activation_(low);
    high = activation_(high);
    if (kResult == Result::kRounded) {
      _mm512_mask_storeu_epi16(y_bf16_ + row.to, mask, Rounded(low.v, high.v));
      return;
    }
    _mm512_mask_storeu_ps(y, low_mask, low.v);
    _mm512_mask_storeu_ps(y + kLanes, high_mask, high.v);
  }

  float* const y_;
  BFloat16* const y_bf16_;
  const Activation activation_;
  Sums sums_[2];
  int next_ = 0;
  int64_t finished_ = 0;  // The number of stored rows of Before().
  int64_t rows_a_step_ = 0;
};

struct NoActivation {
  Vec16 operator()(Vec16 v) const { return v; }
};

// Limits v to [low, high]. A NaN stays a NaN.
struct Clamped {
  Vec16 operator()(Vec16 v) const {
    return Min(Vec16::Set(high), Max(Vec16::Set(low), v));
  }
  float low, high;
};

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_LINEAR_AMX_RESULTS_H_
