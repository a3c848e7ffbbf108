#ifndef SFMAMBA_KERNELS_SEQUENCE_ATTENTION_H_
#define SFMAMBA_KERNELS_SEQUENCE_ATTENTION_H_

#include <cstdint>

#include "kernels/base/bfloat16.h"
#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// y = softmax(q k^T / sqrt(d)) v for one sequence and head. Products are
// computed in W, float or BFloat16, as in kernels/linear/packed_gemm.h, and all
// sums in fp32: with BFloat16 the weights of the values are rounded to bf16
// (not those in the denominator), and y is once.
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

// Weights are written in whole steps of this number of keys.
template <typename W>
constexpr int64_t kKeyStep = 16;
template <>
inline constexpr int64_t kKeyStep<BFloat16> = 32;  // A step of AMX.

// The scores of some queries with some keys, and the weights they become.
template <typename W>
struct ScoreBlock {
  int64_t queries, keys;
  // [queries, keys], rows `stride` apart. The stride has room for whole steps,
  // and what lies behind the keys is overwritten.
  float* scores;
  // [queries, keys], rows `stride` apart, written: 2^(scale * (score -
  // largest)), of which those below 2^-126 may be 2^-126 or 0. Behind the keys
  // of the last step there are zeros. With floats these may be the scores.
  W* weights;
  int64_t stride;
  float scale;
  bool first;  // No scores of these queries before.
  // [queries]. `largest` and `sums` are of the scores before this block, if
  // any, and then with it. Sums are of weights before they are rounded.
  // 2^(scale * (old largest - new largest)) is written to `shrink` unless the
  // block is the first.
  float *largest, *sums, *shrink;
};

// y = x * factor, with a factor for each row.
template <typename W>
struct ScaleRowsArgs {
  int64_t rows, columns;
  const float* x;  // [rows, columns], rows x_stride apart
  int64_t x_stride;
  const float* factors;  // [rows]
  W* y;                  // [rows, columns], rows y_stride apart, written
  int64_t y_stride;
};

// AttentionCpu chooses among these, one per instruction set.
template <typename W>
void SoftmaxBlockScalar(const ScoreBlock<W>& block);
template <typename W>
void SoftmaxBlockAvx2(const ScoreBlock<W>& block);
template <typename W>
void SoftmaxBlockAvx512(const ScoreBlock<W>& block);
template <typename W>
void ScaleRowsScalar(const ScaleRowsArgs<W>& args);
template <typename W>
void ScaleRowsAvx2(const ScaleRowsArgs<W>& args);
template <typename W>
void ScaleRowsAvx512(const ScaleRowsArgs<W>& args);
// Need HasAvx512Bf16().
void SoftmaxBlockAvx512Bf16(const ScoreBlock<BFloat16>& block);
void ScaleRowsAvx512Bf16(const ScaleRowsArgs<BFloat16>& args);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SEQUENCE_ATTENTION_H_
