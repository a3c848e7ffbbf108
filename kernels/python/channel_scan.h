#ifndef SFMAMBA_KERNELS_PYTHON_CHANNEL_SCAN_H_
#define SFMAMBA_KERNELS_PYTHON_CHANNEL_SCAN_H_

#include <cstdint>

#include "kernels/python/strided.h"
#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// The selective scan of one sequence, with tensors as mamba-ssm has them. For
// each channel d, with a state h[n] that is 0 at token 0 and at each multiple
// of `period`:
//   x      = delta[d,i] + bias[d]
//   step   = softplus ? log(1 + exp(x)) : x
//   h[n]   = exp(step * A[d,n]) * h[n] + step * B[n,i] * u[d,i]
//   y[d,i] = sum over n of C[n,i] * h[n], plus D[d] * u[d,i]
//   out    = y, times z / (1 + exp(-z)) if there is a z
// A NaN or an infinity in one period never reaches another, nor does it reach
// another channel's outputs. Source: Mamba (arXiv 2312.00752), section 3.
//
// T is float, BFloat16 or double; Real is Arithmetic<T>.
template <typename T>
struct ChannelScanArgs {
  using Real = Arithmetic<T>;

  int channels;  // At most kMaxScanChannels; multiples of 16 are fastest.
  int states;    // Any number; multiples of 4 are fastest.
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

// Gradients of the outputs and, written, of the inputs. Sums over channels are
// over this call's channels.
template <typename T>
struct ChannelScanBackward {
  using Real = Arithmetic<T>;

  Strided<const T> out;    // [channels, tokens]
  const Real* last_state;  // [channels, states], or null for 0
  Strided<T> u, delta;     // [channels, tokens]
  Strided<T> z;            // [channels, tokens]; unused without a z
  Real* A;                 // [channels, states]
  Real* D;                 // [channels]
  Real* bias;              // [channels]
  Real* B;                 // [states, tokens]
  Real* C;                 // [states, tokens]
};

// Runs on the calling thread. `isa` must be one of SupportedCpuIsas(); doubles
// are computed by the scalar loop whatever it is.
template <typename T>
void ChannelScan(const ChannelScanArgs<T>& args,
                 const ChannelScanForward<T>& results,
                 CpuIsa isa = ActiveCpuIsa());

// The gradient of ChannelScan(). It saves the states of every 32nd token in
// `scratch` and recomputes those between.
template <typename T>
void ChannelScanGradient(const ChannelScanArgs<T>& args,
                         const ChannelScanBackward<T>& gradients,
                         CpuIsa isa = ActiveCpuIsa());

// Return how many values `args.scratch` must hold.
template <typename T>
int64_t ScanScratch(const ChannelScanArgs<T>& args);
template <typename T>
int64_t BackwardScratch(const ChannelScanArgs<T>& args);

// The two functions above choose among these, one per instruction set. T is
// float or BFloat16.
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
