#ifndef SFMAMBA_KERNELS_SEQUENCE_ATTENTION_H_
#define SFMAMBA_KERNELS_SEQUENCE_ATTENTION_H_

#include <cstdint>

#include "kernels/base/bfloat16.h"
#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// y = softmax(q k^T / sqrt(d)) v for one sequence and head. Products are
// computed in W, float or BFloat16, as in kernels/linear/packed_gemm.h, and all
// sums in fp32: with BFloat16 the weights of the values are rounded to bf16,
// and y is once.
//
// The scores are never all in memory: keys are taken in blocks, and the sums of
// a query are rescaled when a block has a larger score than those before.
// A query's result is bit-identical whatever the other queries and the thread
// are. A NaN in a query affects only its result.
// Source: Milakov and Gimelshein, Online normalizer calculation for softmax
// (arXiv 1805.02867); FlashAttention (arXiv 2205.14135), 3.1.
template <typename W = float>
struct AttentionArgs {
  int64_t queries, tokens;  // At least one token.
  int64_t d;
  const W* q;  // [queries, d], rows q_stride apart
  const W* k;  // [tokens, d], rows k_stride apart
  const W* v;  // [tokens, d], rows v_stride apart
  W* y;        // [queries, d], rows y_stride apart, written
  int64_t q_stride, k_stride, v_stride, y_stride;
};

// Runs on the calling thread.
template <typename W>
void AttentionCpu(const AttentionArgs<W>& args, CpuIsa isa = ActiveCpuIsa());

// A block of scores: some queries by some keys.
struct ScoreBlock {
  int64_t queries;
  // A multiple of 16. Scores of -infinity have no weight.
  int64_t keys;
  float* scores;  // [queries, keys]; replaced by weights
  float scale;    // Weights are 2^(scale * (score - largest)).
  // [queries]. `largest` and `sums` are of the scores before this block and
  // then with it; 2^(scale * (old largest - new largest)) is written to
  // `shrink`.
  float *largest, *sums, *shrink;
};

// AttentionCpu chooses among these, one per instruction set.
void SoftmaxBlockScalar(const ScoreBlock& block);
void SoftmaxBlockAvx2(const ScoreBlock& block);
void SoftmaxBlockAvx512(const ScoreBlock& block);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SEQUENCE_ATTENTION_H_
