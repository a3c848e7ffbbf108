#ifndef SFMAMBA_KERNELS_PYTHON_CHANNEL_SCAN_H_
#define SFMAMBA_KERNELS_PYTHON_CHANNEL_SCAN_H_

#include <cstdint>

#include "kernels/python/strided.h"
#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// The selective scan of one sequence. Tensors have the same shapes as in the
// package mamba-ssm. For each channel d, there is a state h[n], which is reset
// to 0 before token 0 and before each multiple of `period`:
//   x      = delta[d,i] + bias[d]
//   step   = softplus ? log(1 + exp(x)) : x
//   h[n]   = exp(step * A[d,n]) * h[n] + step * B[n,i] * u[d,i]
//   y[d,i] = sum over n of C[n,i] * h[n], plus D[d] * u[d,i]
//   out    = y, times z / (1 + exp(-z)) if there is a z
// A NaN or an infinity in one period never reaches another period or the
// outputs of another channel.
// Source: Mamba (arXiv 2312.00752), section 3.
//
// T is float, BFloat16 or double. Real is Arithmetic<T>.
template <typename T>
struct ChannelScanArgs {
  using Real = Arithmetic<T>;

  int channels;  // At most kMaxScanChannels. Multiples of 16 are fastest.
  int states;    // Any number. Multiples of 4 are fastest.
  int64_t tokens;
  int64_t period;  // At least 1.
  bool softplus;
  Strided<const T> u, delta;  // [channels, tokens]
  Strided<const T> z;         // [channels, tokens], or null
  Strided<const T> B, C;      // [states, tokens]
  const Real* A;              // [channels, states]
  const Real* D;              // [channels], or null
  const Real* bias;           // [channels], or null
  Real* scratch;              // ScanScratch() or BackwardScratch() values
};

constexpr int kMaxScanChannels = 64;

template <typename T>
struct ChannelScanForward {
  Strided<T> out;             // [channels, tokens], written
  Arithmetic<T>* last_state;  // [channels, states], written
};

// The gradients of the outputs, which are read, and of the inputs, which are
// written. The gradients of B and C are sums over the channels of this call.
template <typename T>
struct ChannelScanBackward {
  using Real = Arithmetic<T>;

  Strided<const T> out;    // [channels, tokens]
  const Real* last_state;  // [channels, states], or null for 0
  Strided<T> u, delta;     // [channels, tokens]
  Strided<T> z;            // [channels, tokens]; unused if args.z is null
  Real* A;                 // [channels, states]
  Real* D;                 // [channels]
  Real* bias;              // [channels]
  Real* B;                 // [states, tokens]
  Real* C;                 // [states, tokens]
};

// Runs on the calling thread. `isa` must be one of SupportedCpuIsas(). Doubles
// are always computed by the scalar loop.
template <typename T>
void ChannelScan(const ChannelScanArgs<T>& args,
                 const ChannelScanForward<T>& results,
                 CpuIsa isa = ActiveCpuIsa());

// Computes the gradient of ChannelScan(). Saves the state of every 32nd token
// in args.scratch and computes the states between them again.
template <typename T>
void ChannelScanGradient(const ChannelScanArgs<T>& args,
                         const ChannelScanBackward<T>& gradients,
                         CpuIsa isa = ActiveCpuIsa());

// These return how many values args.scratch must have for ChannelScan() and for
// ChannelScanGradient().
template <typename T>
int64_t ScanScratch(const ChannelScanArgs<T>& args);
template <typename T>
int64_t BackwardScratch(const ChannelScanArgs<T>& args);

// ChannelScan() and ChannelScanGradient() call these, depending on the
// instruction set. T is float or BFloat16.
template <typename T>
void ChannelScanAvx2(const ChannelScanArgs<T>& args,
                     const ChannelScanForward<T>& results);
template <typename T>
void ChannelScanAvx512(const ChannelScanArgs<T>& args,
                       const ChannelScanForward<T>& results);
template <typename T>
void ChannelScanGradientAvx2(const ChannelScanArgs<T>& args,
                             const ChannelScanBackward<T>& gradients);
template <typename T>
void ChannelScanGradientAvx512(const ChannelScanArgs<T>& args,
                               const ChannelScanBackward<T>& gradients);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_PYTHON_CHANNEL_SCAN_H_
