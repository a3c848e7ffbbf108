#ifndef SFMAMBA_KERNELS_SEQUENCE_TOKEN_MEAN_H_
#define SFMAMBA_KERNELS_SEQUENCE_TOKEN_MEAN_H_

#include <cstdint>

#include "kernels/base/bfloat16.h"
#include "kernels/base/packed_sequences.h"
#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// Tokens summed at a time, the sums then added up, against rounding.
constexpr int64_t kTokenMeanBlock = 64;

// The mean over the tokens of each sequence, summed in fp32: the first value of
// SF-Mamba's auxiliary tokens (arXiv 2603.16423, 3.2).
//
// For sequences [head, x_0 .. x_{T-1}, tail] whose end tokens are yet to be
// filled, `margin` = 1 leaves those out of the mean, and `mean` and `copy` may
// point at the first head and the first tail, one sequence apart.
template <typename T>
struct TokenMeanArgs {
  int channels;
  const T* x;  // [tokens, channels], rows x_stride apart
  int64_t x_stride;
  int margin = 0;  // Tokens left out at each end; at least one must remain.
  T* mean;  // [sequences.count, channels], rows mean_stride apart, written
  int64_t mean_stride;
  T* copy = nullptr;  // Null, or a second destination with the same stride
  PackedSequences sequences;
};

// T is float or BFloat16. Runs on the calling thread.
template <typename T>
void TokenMeanCpu(const TokenMeanArgs<T>& args, CpuIsa isa = ActiveCpuIsa());

// TokenMeanCpu chooses among these, one per instruction set.
template <typename T>
void TokenMeanScalar(const TokenMeanArgs<T>& args);
template <typename T>
void TokenMeanAvx2(const TokenMeanArgs<T>& args);
template <typename T>
void TokenMeanAvx512(const TokenMeanArgs<T>& args);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SEQUENCE_TOKEN_MEAN_H_
