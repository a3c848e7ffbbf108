#ifndef SFMAMBA_KERNELS_PYTHON_CAUSAL_CONV1D_H_
#define SFMAMBA_KERNELS_PYTHON_CAUSAL_CONV1D_H_

#include <cstdint>

#include "kernels/python/strided.h"
#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// Depthwise causal convolution of one sequence. Tensors have the same shapes as
// in the package causal-conv1d:
//   v[d,i]   = bias[d] + sum over j < taps of weight[d,taps-1-j] * x[d,i-j]
//   out[d,i] = silu ? v / (1 + exp(-v)) : v
// Tokens form runs, and taps never reach tokens before the current run. A run
// begins at each multiple of `period` and where `run` changes. If there are
// `initial` tokens, the first run begins with these, in front of token 0. A
// token whose `run` is negative has the output 0. A NaN or an infinity in one
// run never reaches another run.
//
// T is float, BFloat16 or double. Real is Arithmetic<T>.
template <typename T>
struct CausalConv1dArgs {
  using Real = Arithmetic<T>;

  int channels;
  int taps;  // 1 .. kMaxTaps
  int64_t tokens;
  int64_t period;  // At least 1.
  bool silu;
  Strided<const T> x;        // [channels, tokens]
  Strided<const T> initial;  // [channels, taps-1], or null
  const int32_t* run;        // [tokens], or null
  const Real* weight;        // [channels, taps]
  const Real* bias;          // [channels], or null
};

constexpr int kMaxTaps = 8;

// The gradient of the output, which is read, and the gradients of the inputs,
// which are written.
template <typename T>
struct CausalConv1dBackward {
  Strided<const T> out;   // [channels, tokens]
  Strided<T> x;           // [channels, tokens]
  Strided<T> initial;     // [channels, taps-1]; unused if args.initial is null
  Arithmetic<T>* weight;  // [channels, taps]
  Arithmetic<T>* bias;    // [channels]
};

// Runs on the calling thread. `isa` must be one of SupportedCpuIsas(). Doubles
// are always computed by the scalar loop.
template <typename T>
void CausalConv1d(const CausalConv1dArgs<T>& args, Strided<T> out,
                  CpuIsa isa = ActiveCpuIsa());
template <typename T>
void CausalConv1dGradient(const CausalConv1dArgs<T>& args,
                          const CausalConv1dBackward<T>& gradients,
                          CpuIsa isa = ActiveCpuIsa());

// CausalConv1d() and CausalConv1dGradient() call these, depending on the
// instruction set. T is float or BFloat16.
template <typename T>
void CausalConv1dAvx2(const CausalConv1dArgs<T>& args, Strided<T> out);
template <typename T>
void CausalConv1dAvx512(const CausalConv1dArgs<T>& args, Strided<T> out);
template <typename T>
void CausalConv1dGradientAvx2(const CausalConv1dArgs<T>& args,
                              const CausalConv1dBackward<T>& gradients);
template <typename T>
void CausalConv1dGradientAvx512(const CausalConv1dArgs<T>& args,
                                const CausalConv1dBackward<T>& gradients);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_PYTHON_CAUSAL_CONV1D_H_
