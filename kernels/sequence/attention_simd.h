// The softmax of attention over a vector type V. The files of one instruction
// set include this header and choose V.
#ifndef SFMAMBA_KERNELS_SEQUENCE_ATTENTION_SIMD_H_
#define SFMAMBA_KERNELS_SEQUENCE_ATTENTION_SIMD_H_

#include <cmath>

#include "kernels/sequence/attention.h"
#include "kernels/simd/simd_math.h"

namespace sfmamba::kernels {
namespace {

// Returns 2^x for x <= 0: 0 below -126, NaN for NaN.
template <typename V>
inline V Exp2AtMostOne(V x) {
  const V lowest = V::Set(-126.0f);
  const V power = Select(Less(x, lowest), V::Set(0.0f), Exp2(Max(lowest, x)));
  return Select(IsNan(x), x, power);
}

template <typename V>
void SoftmaxBlock(const ScoreBlock& block) {
  for (int64_t i = 0; i < block.queries; ++i) {
    float* scores = block.scores + i * block.keys;
    // A NaN may be lost here, but not its weight.
    V most = V::Load(scores);
    for (int64_t c = V::kWidth; c < block.keys; c += V::kWidth) {
      most = Max(most, V::Load(scores + c));
    }
    alignas(64) float lanes[V::kWidth];
    most.Store(lanes);
    const float before = block.largest[i];
    float largest = before;
    for (const float lane : lanes) largest = lane > largest ? lane : largest;
    block.largest[i] = largest;
    const V scale = V::Set(block.scale), at_one = V::Set(largest);
    V sum = V::Set(0.0f);
    for (int64_t c = 0; c < block.keys; c += V::kWidth) {
      const V weight = Exp2AtMostOne((V::Load(scores + c) - at_one) * scale);
      weight.Store(scores + c);
      sum = sum + weight;
    }
    const float shrink = std::exp2(block.scale * (before - largest));
    block.shrink[i] = shrink;
    block.sums[i] = block.sums[i] * shrink + Sum(sum);
  }
}

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SEQUENCE_ATTENTION_SIMD_H_
