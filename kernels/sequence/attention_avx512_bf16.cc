// The softmax of attention with weights that the processor rounds to bf16.
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

// The vectors of a step.
struct Step {
  Vec16 low, high;
};

// Which of a step's keys, of which `count` are left, there are.
__mmask32 First(int64_t count) {
  return count >= kStep ? ~__mmask32{0} : (__mmask32{1} << count) - 1;
}

// Loads a step's scores; those of no key are -infinity.
Step LoadScores(const float* scores, __mmask32 keys) {
  const __m512 none = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
  return {{_mm512_mask_loadu_ps(none, static_cast<__mmask16>(keys), scores)},
          {_mm512_mask_loadu_ps(none, static_cast<__mmask16>(keys >> kLanes),
                                scores + kLanes)}};
}

// Returns 2^x for x <= 0: 2^-126 for less than that, NaN for NaN.
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
  for (int64_t i = 0; i < block.queries; ++i) {
    const float* scores = block.scores + i * block.stride;
    BFloat16* weights = block.weights + i * block.stride;
    // A NaN may be lost here, but not its weight.
    Step most = LoadScores(scores, First(block.keys));
    for (int64_t c = kStep; c < block.keys; c += kStep) {
      const Step step = LoadScores(scores + c, First(block.keys - c));
      most = {Max(most.low, step.low), Max(most.high, step.high)};
    }
    float largest = Largest(Max(most.low, most.high));
    if (!block.first && block.largest[i] > largest) largest = block.largest[i];
    const Vec16 scale = Vec16::Set(block.scale), at_one = Vec16::Set(largest);
    Step sum{Vec16::Set(0.0f), Vec16::Set(0.0f)};
    for (int64_t c = 0; c < block.keys; c += kStep) {
      const __mmask32 keys = First(block.keys - c);
      const Step step = LoadScores(scores + c, keys);
      const Vec16 low = Exp2AtLeastLowest((step.low - at_one) * scale);
      const Vec16 high = Exp2AtLeastLowest((step.high - at_one) * scale);
      const __m512bh rounded = _mm512_maskz_cvtne2ps_pbh(keys, high.v, low.v);
      _mm512_storeu_si512(weights + c, reinterpret_cast<__m512i>(rounded));
      sum = {sum.low + low, sum.high + high};
    }
    AddToSums(block, i, largest, Sum(sum.low + sum.high));
  }
}

}  // namespace sfmamba::kernels
