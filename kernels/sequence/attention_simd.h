// Computes the softmax of attention by vectors of type V. attention_isa.cc
// includes this header and is compiled once for each instruction set, with a
// different V.
#ifndef SFMAMBA_KERNELS_SEQUENCE_ATTENTION_SIMD_H_
#define SFMAMBA_KERNELS_SEQUENCE_ATTENTION_SIMD_H_

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/sequence/attention.h"
#include "kernels/simd/simd_math.h"

namespace sfmamba::kernels {
namespace {

// Returns 2^x for x <= 0. Returns 0 if x is below -126, and NaN if x is NaN.
template <typename V>
inline V Exp2AtMostOne(V x) {
  const V lowest = V::Set(-126.0f);
  const V power = Select(Less(x, lowest), V::Set(0.0f), Exp2(Max(lowest, x)));
  return Select(IsNan(x), x, power);
}

// Updates block.largest, block.sums and block.shrink of query i after a block
// of keys. The parameter `largest` is the query's largest score in all blocks
// so far, including this block. The parameter `sum` is the sum of the query's
// weights in this block only.
template <typename W>
void AddToSums(const ScoreBlock<W>& block, int64_t i, float largest,
               float sum) {
  if (!block.first) {
    const float shrink = std::exp2(block.scale * (block.largest[i] - largest));
    block.shrink[i] = shrink;
    sum += block.sums[i] * shrink;
  }
  block.largest[i] = largest;
  block.sums[i] = sum;
}

template <typename V, typename W>
void SoftmaxBlock(const ScoreBlock<W>& block) {
  const int64_t keys =
      (block.keys + kKeyStep<W> - 1) / kKeyStep<W> * kKeyStep<W>;
  for (int64_t i = 0; i < block.queries; ++i) {
    float* scores = block.scores + i * block.stride;
    W* weights = block.weights + i * block.stride;
    std::fill(scores + block.keys, scores + keys,
              -std::numeric_limits<float>::infinity());
    // A NaN score may be ignored here, but its weight will be NaN.
    V most = V::Load(scores);
    for (int64_t c = V::kWidth; c < keys; c += V::kWidth) {
      most = Max(most, V::Load(scores + c));
    }
    const float before = block.largest[i];
    float largest = Largest(most);
    if (!block.first && before > largest) largest = before;
    const V scale = V::Set(block.scale), at_one = V::Set(largest);
    V sum = V::Set(0.0f);
    for (int64_t c = 0; c < keys; c += V::kWidth) {
      const V weight = Exp2AtMostOne((V::Load(scores + c) - at_one) * scale);
      weight.Store(weights + c);
      sum = sum + weight;
    }
    AddToSums(block, i, largest, Sum(sum));
  }
}

template <typename V, typename W>
void ScaleRows(const ScaleRowsArgs<W>& args) {
  for (int64_t i = 0; i < args.rows; ++i) {
    const float* x = args.x + i * args.x_stride;
    W* y = args.y + i * args.y_stride;
    const V factor = V::Set(args.factors[i]);
    ForEachVector<V>(args.columns, [&](int64_t c, int lanes) {
      StoreLanes(LoadLanes<V>(x + c, lanes) * factor, y + c, lanes);
    });
  }
}

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SEQUENCE_ATTENTION_SIMD_H_
