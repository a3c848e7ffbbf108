#ifndef SFMAMBA_KERNELS_SEQUENCE_DEPTHWISE_CONV1D_H_
#define SFMAMBA_KERNELS_SEQUENCE_DEPTHWISE_CONV1D_H_

#include <cstdint>

#include "kernels/base/bfloat16.h"
#include "kernels/base/packed_sequences.h"
#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// Depthwise 1-D convolution along each sequence, optionally followed by SiLU:
//   v      = bias[c] + sum over j of weight[j,c] * x[i + j - left, c]
//   y[i,c] = silu ? v / (1 + exp(-v)) : v
// Taps that fall outside the sequence are skipped, so that a NaN or an infinity
// in one sequence never reaches another.
// Source: MambaVision (arXiv 2407.08083), 3 taps, centred; Vim (arXiv
// 2401.09417), 4 taps, causal.
template <typename T>
struct DepthwiseConv1dArgs {
  int channels;
  int taps;
  int left;    // Taps before token i: 1 for 3 centred taps, 3 for 4 causal.
  const T* x;  // [tokens, channels], rows x_stride apart
  int64_t x_stride;
  T* y;  // [tokens, channels], written; must not overlap x
  int64_t y_stride;
  const float* weight;  // [taps, channels]
  const float* bias;    // [channels], or null for none
  bool silu;
  PackedSequences sequences;
};

// T is float or BFloat16. The arithmetic is fp32. Runs on the calling thread.
template <typename T>
void DepthwiseConv1dCpu(const DepthwiseConv1dArgs<T>& args,
                        CpuIsa isa = ActiveCpuIsa());

// DepthwiseConv1dCpu() calls one of these, depending on the instruction set.
template <typename T>
void DepthwiseConv1dScalar(const DepthwiseConv1dArgs<T>& args);
template <typename T>
void DepthwiseConv1dAvx2(const DepthwiseConv1dArgs<T>& args);
template <typename T>
void DepthwiseConv1dAvx512(const DepthwiseConv1dArgs<T>& args);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SEQUENCE_DEPTHWISE_CONV1D_H_
