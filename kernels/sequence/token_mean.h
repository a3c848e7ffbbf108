#ifndef SFMAMBA_KERNELS_SEQUENCE_TOKEN_MEAN_H_
#define SFMAMBA_KERNELS_SEQUENCE_TOKEN_MEAN_H_

#include <cstdint>

#include "kernels/base/bfloat16.h"
#include "kernels/base/packed_sequences.h"
#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// The number of tokens in a block. The tokens of each block are summed first,
// and then the sums of the blocks. This keeps the rounding error small.
constexpr int64_t kTokenMeanBlock = 64;

// Computes the mean over the tokens of each sequence, summed in fp32. This mean
// is the initial value of SF-Mamba's auxiliary tokens (arXiv 2603.16423, 3.2).
//
// The auxiliary tokens of sequences [head, x_0 .. x_{T-1}, tail] can be set in
// place. For this, `margin` is 1, so that the mean excludes head and tail.
// `mean` points at the first head and `copy` at the first tail. mean_stride is
// the number of elements from one sequence to the next.
template <typename T>
struct TokenMeanArgs {
  int channels;
  const T* x;  // [tokens, channels], rows x_stride apart
  int64_t x_stride;
  int margin = 0;  // Tokens excluded at each end; at least one must remain.
  T* mean;  // [sequences.count, channels], rows mean_stride apart, written
  int64_t mean_stride;
  T* copy = nullptr;  // A second destination with the same stride, or null
  PackedSequences sequences;
};

// T is float or BFloat16. Runs on the calling thread.
template <typename T>
void TokenMeanCpu(const TokenMeanArgs<T>& args, CpuIsa isa = ActiveCpuIsa());

// TokenMeanCpu() calls one of these, depending on the instruction set.
template <typename T>
void TokenMeanScalar(const TokenMeanArgs<T>& args);
template <typename T>
void TokenMeanAvx2(const TokenMeanArgs<T>& args);
template <typename T>
void TokenMeanAvx512(const TokenMeanArgs<T>& args);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SEQUENCE_TOKEN_MEAN_H_
