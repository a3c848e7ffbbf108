#ifndef SFMAMBA_KERNELS_SEQUENCE_ATTENTION_H_
#define SFMAMBA_KERNELS_SEQUENCE_ATTENTION_H_

#include <cstdint>

#include "kernels/base/bfloat16.h"
#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// Computes y = softmax(q k^T / sqrt(d)) v for one sequence and one head.
// Products are computed in W, which is float or BFloat16, as in
// kernels/linear/packed_gemm.h. All sums are fp32. If W is BFloat16, the
// softmax weights that multiply the values are rounded to bf16, but the weights
// in the denominator are not. y is rounded once.
//
// The scores (q k^T) are never all in memory, because the keys are processed in
// blocks. If a block has a larger score than all blocks before it, the sums of
// the query are rescaled. The bits of a query's result depend neither on the
// other queries nor on the thread. A NaN in a query affects only the result of
// this query.
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

// The number of weights that are written per query is a multiple of kKeyStep.
template <typename W>
constexpr int64_t kKeyStep = 16;
template <>
inline constexpr int64_t kKeyStep<BFloat16> = 32;  // A row of an AMX tile.

// The scores of a block of queries for a block of keys, and the softmax weights
// that are computed from the scores.
template <typename W>
struct ScoreBlock {
  int64_t queries, keys;
  // [queries, keys], rows `stride` elements apart. `stride` must be at least
  // the number of keys, rounded up to whole steps of kKeyStep<W> keys. The
  // elements of a row after its last key may be overwritten.
  float* scores;
  // Written, [queries, keys], rows `stride` elements apart: 2^(scale * (score -
  // largest)). A weight below 2^-126 may be replaced by 2^-126 or 0. Zeros are
  // written after the last key, up to a whole step. If W is float, `weights`
  // may be equal to `scores`.
  W* weights;
  int64_t stride;
  float scale;
  bool first;  // Whether this is the first block of keys.
  // [queries] each. `largest` is the largest score of each query so far. `sums`
  // is the sum of the query's weights so far, before they are rounded. This
  // block sets both if it is the first, and updates both if not. Unless it is
  // the first, 2^(scale * (old largest - new largest)) is written to `shrink`.
  float *largest, *sums, *shrink;
};

// Multiplies each row of x by its own factor: y[i, c] = x[i, c] * factors[i].
template <typename W>
struct ScaleRowsArgs {
  int64_t rows, columns;
  const float* x;  // [rows, columns], rows x_stride apart
  int64_t x_stride;
  const float* factors;  // [rows]
  W* y;                  // [rows, columns], rows y_stride apart, written
  int64_t y_stride;
};

// AttentionCpu() calls these, depending on the instruction set.
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
// These may be called only if HasAvx512Bf16() is true.
void SoftmaxBlockAvx512Bf16(const ScoreBlock<BFloat16>& block);
void ScaleRowsAvx512Bf16(const ScaleRowsArgs<BFloat16>& args);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SEQUENCE_ATTENTION_H_
