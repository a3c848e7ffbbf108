#ifndef SFMAMBA_KERNELS_SEQUENCE_LAYER_NORM_H_
#define SFMAMBA_KERNELS_SEQUENCE_LAYER_NORM_H_

#include <cstdint>

#include "kernels/base/bfloat16.h"
#include "kernels/base/packed_sequences.h"
#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// Layer normalisation of each token over its channels:
//   y[i,c] = (x[i,c] - mean) / sqrt(variance + eps) * gamma[c] + beta[c]
// The variance is biased (a sum divided by `channels`). It is computed in fp32,
// in a second pass.
//
// If `swap` is true, the first and the last token of each sequence are
// exchanged, in y and also in x itself. This is SF-Mamba's auxiliary token swap
// (arXiv 2603.16423, 3.2). It takes little time here because the rows are read
// anyway.
template <typename T, typename Y = T>
struct LayerNormArgs {
  int channels;
  T* x;  // [tokens, channels], rows x_stride apart; written only with `swap`
  int64_t x_stride;
  Y* y;  // [tokens, channels], written; must not overlap x
  int64_t y_stride;
  const float* gamma;  // [channels]
  const float* beta;   // [channels]
  float eps;
  bool swap;
  PackedSequences sequences;
};

// T and Y are float or BFloat16. If T is BFloat16, Y must be BFloat16 as well.
// Runs on the calling thread.
template <typename T, typename Y>
void LayerNormCpu(const LayerNormArgs<T, Y>& args, CpuIsa isa = ActiveCpuIsa());

// LayerNormCpu() calls one of these, depending on the instruction set.
template <typename T, typename Y>
void LayerNormScalar(const LayerNormArgs<T, Y>& args);
template <typename T, typename Y>
void LayerNormAvx2(const LayerNormArgs<T, Y>& args);
template <typename T, typename Y>
void LayerNormAvx512(const LayerNormArgs<T, Y>& args);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SEQUENCE_LAYER_NORM_H_
