// The softmax and the scaling of rows for attention in bf16, on CPUs with
// AVX512-BF16. The instructions of AVX512-BF16 round the results to bf16.
// PackedGemmCpu() computes the matrix products of attention.
#include <immintrin.h>

#include <cstdint>
#include <limits>

#include "kernels/sequence/attention.h"
#include "kernels/sequence/attention_simd.h"
#include "kernels/simd/simd_math.h"
#include "kernels/simd/vec16.h"

namespace sfmamba::kernels {
namespace {

constexpr int64_t kLanes = 16, kStep = kKeyStep<BFloat16>;

// kStep consecutive values of a row, in two vectors.
struct Step {
  Vec16 low, high;
};

// Divides `count` values into steps of kStep values. Calls f(c, mask) for each
// step, where c is the index of the step's first value. Bit i of the mask is 1
// if c + i is less than `count`.
template <typename F>
void ForEachStep(int64_t count, F f) {
  int64_t c = 0;
  for (; c + kStep <= count; c += kStep) f(c, ~__mmask32{0});
  if (c < count) f(c, (__mmask32{1} << (count - c)) - 1);
}

// Loads a step. Values whose bit in the mask is 0 become -infinity.
Step Load(const float* x, __mmask32 mask) {
  const __m512 none = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
  return {{_mm512_mask_loadu_ps(none, static_cast<__mmask16>(mask), x)},
          {_mm512_mask_loadu_ps(none, static_cast<__mmask16>(mask >> kLanes),
                                x + kLanes)}};
}

// Returns 2^x for x <= 0. Returns 2^-126 if x is below -126, and NaN if x is
// NaN.
Vec16 Exp2AtLeastLowest(Vec16 x) {
  x = Max(Vec16::Set(-126.0f), x);
  const Vec16 whole = (x + Vec16::Set(kRound)) - Vec16::Set(kRound);
  const Vec16 f = x - whole;
  Vec16 p = Vec16::Set(kExp2[5]);
  for (int degree = 4; degree >= 0; --degree) {
    p = Fma(p, f, Vec16::Set(kExp2[degree]));
  }
  return {_mm512_scalef_ps(p.v, whole.v)};
}

}  // namespace

void SoftmaxBlockAvx512Bf16(const ScoreBlock<BFloat16>& block) {
  const Vec16 lowest = Vec16::Set(-std::numeric_limits<float>::infinity());
  const Vec16 zero = Vec16::Set(0.0f), scale = Vec16::Set(block.scale);
  for (int64_t i = 0; i < block.queries; ++i) {
    const float* scores = block.scores + i * block.stride;
    BFloat16* weights = block.weights + i * block.stride;
    // A NaN score may be ignored here, but its weight will be NaN.
    Step most{lowest, lowest};
    ForEachStep(block.keys, [&](int64_t c, __mmask32 keys) {
      const Step step = Load(scores + c, keys);
      most = {Max(most.low, step.low), Max(most.high, step.high)};
    });
    float largest = Largest(Max(most.low, most.high));
    if (!block.first && block.largest[i] > largest) largest = block.largest[i];
    const Vec16 at_one = Vec16::Set(largest);
    Step sum{zero, zero};
    ForEachStep(block.keys, [&](int64_t c, __mmask32 keys) {
      const Step step = Load(scores + c, keys);
      const Vec16 low = Exp2AtLeastLowest((step.low - at_one) * scale);
      const Vec16 high = Exp2AtLeastLowest((step.high - at_one) * scale);
      const __m512bh rounded = _mm512_maskz_cvtne2ps_pbh(keys, high.v, low.v);
      _mm512_storeu_si512(weights + c, reinterpret_cast<__m512i>(rounded));
      sum = {sum.low + low, sum.high + high};
    });
    AddToSums(block, i, largest, Sum(sum.low + sum.high));
  }
}

void ScaleRowsAvx512Bf16(const ScaleRowsArgs<BFloat16>& args) {
  for (int64_t i = 0; i < args.rows; ++i) {
    const float* x = args.x + i * args.x_stride;
    BFloat16* y = args.y + i * args.y_stride;
    const Vec16 factor = Vec16::Set(args.factors[i]);
    ForEachStep(args.columns, [&](int64_t c, __mmask32 mask) {
      const Step step = Load(x + c, mask);
      const __m512bh rounded =
          _mm512_cvtne2ps_pbh((step.high * factor).v, (step.low * factor).v);
      _mm512_mask_storeu_epi16(y + c, mask, reinterpret_cast<__m512i>(rounded));
    });
  }
}

}  // namespace sfmamba::kernels
