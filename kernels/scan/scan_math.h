#ifndef SFMAMBA_KERNELS_SCAN_SCAN_MATH_H_
#define SFMAMBA_KERNELS_SCAN_SCAN_MATH_H_

#include <cstdint>

#include "kernels/base/logarithms.h"
#include "simt/simt.h"

// The arithmetic of the selective scan in base 2, for device code and for tests
// on the host. If v = (dt + bias) * log2(e) and s = log2(1 + 2^v), then
//   exp(delta * A) = 2^(A * s)   and   delta * u = s * ln(2) * u.
namespace sfmamba::kernels {

// Returns log2(1 + 2^v) with a relative error of 5e-7. For v above 125 this is
// v itself.
__device__ __forceinline__ float Softplus2(float v) {
  const float t = simt::Exp2(-fabsf(v));
  // For small t, a polynomial approximates log2(1 + t) / t, because the sum 1 +
  // t would lose the low bits of t.
  float quotient = fmaf(t, -0.297839126f, 0.476213636f);
  quotient = fmaf(t, quotient, -0.721232999f);
  quotient = fmaf(t, quotient, 1.4426946f);
  const float small = t * quotient;
  return fmaxf(v, 0.0f) + (t < 0.125f ? small : simt::Log2(1.0f + t));
}

// Returns the state after one more token. `h` is the state before the token,
// and `g` is delta * u.
__device__ __forceinline__ float ScanStep(float h, float A, float s, float g,
                                          float B) {
  return fmaf(simt::Exp2(A * s), h, g * B);
}

// Computes the state at the end of each of `ends` consecutive pieces of a
// sequence. On entry, state[i * step] is the state at the end of piece i if
// piece i begins with h = 0. On return, it is the true state. s_sum[i * step]
// is the sum of s over the tokens of piece i.
__device__ __forceinline__ void ChainEnds(float A, float* state,
                                          const float* s_sum, int64_t step,
                                          int ends) {
  constexpr int kLoads = 8;  // Ends that are loaded together.
  float h = 0;
  for (int first = 0; first < ends; first += kLoads) {
    float states[kLoads], s_sums[kLoads];
#pragma unroll
    for (int q = 0; q < kLoads; ++q) {
      if (first + q < ends) {
        states[q] = state[(first + q) * step];
        s_sums[q] = s_sum[(first + q) * step];
      }
    }
#pragma unroll
    for (int q = 0; q < kLoads; ++q) {
      if (first + q < ends) {
        h = fmaf(simt::Exp2(A * s_sums[q]), h, states[q]);
        state[(first + q) * step] = h;
      }
    }
  }
}

// The effect of a run of tokens on a state h, which becomes decay * h + state.
struct ScanSpan {
  float decay, state;
};

// Returns the effect of `before` followed by `after`. If a sequence starts
// within `after`, the result does not depend on `before`. In this case,
// `before` is ignored instead of multiplied by 0, so that NaNs in `before` do
// not reach the result.
__device__ __forceinline__ ScanSpan Combine(const ScanSpan& before,
                                            const ScanSpan& after,
                                            bool after_starts) {
  return {after_starts ? after.decay : before.decay * after.decay,
          after_starts ? after.state
                       : fmaf(after.decay, before.state, after.state)};
}

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SCAN_SCAN_MATH_H_
