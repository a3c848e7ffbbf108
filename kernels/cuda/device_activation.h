// The activations of kernels/cuda/cuda_activation.h in device code. Only .cu
// files include this header.
#ifndef SFMAMBA_KERNELS_CUDA_DEVICE_ACTIVATION_H_
#define SFMAMBA_KERNELS_CUDA_DEVICE_ACTIVATION_H_

#include <limits>

#include "kernels/base/logarithms.h"
#include "kernels/cuda/cuda_activation.h"
#include "simt/simt.h"

namespace sfmamba::kernels {

// Limits v to [low, high]. A NaN stays a NaN.
struct Clamp {
  float low, high;

  __device__ __forceinline__ float operator()(float v) const {
    return simt::Min(simt::Max(v, low), high);
  }
};

// Returns v * Phi(v), where Phi is the standard normal distribution function.
// The absolute error of Phi is 7.5e-8. Phi(-|v|) is computed as
//   exp(-v^2 / 2) / 2 * (a polynomial in 1 / (1 + p |v| / sqrt(2)))
// Source: Abramowitz and Stegun, 7.1.26.
struct GeluErf {
  __device__ __forceinline__ float operator()(float v) const {
    const float t = simt::Reciprocal(fmaf(fabsf(v), 0.231641888f, 1.0f));
    float tail = fmaf(t, 0.5307027145f, -0.7265760135f);
    tail = fmaf(t, tail, 0.7107068705f);
    tail = fmaf(t, tail, -0.142248368f);
    tail = fmaf(t, tail, 0.127414796f);
    tail *= t * simt::Exp2(v * v * (-0.5f * kLog2E));
    return v * (v >= 0 ? 1.0f - tail : tail);
  }
};

// Returns v/2 * (1 + tanh(z)) with z = 0.79788456 (v + 0.044715 v^3). The code
// computes the equal v / (1 + exp(-2z)).
struct GeluTanh {
  __device__ __forceinline__ float operator()(float v) const {
    constexpr float kScale = -2 * 0.797884561f * kLog2E;
    const float exponent = v * fmaf(v * v, 0.044715f * kScale, kScale);
    return v * simt::Reciprocal(1.0f + simt::Exp2(exponent));
  }
};

// Returns the Clamp for an activation that is kNone, kRelu or kRelu6.
inline Clamp ClampOf(CudaActivation activation) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const bool rectified = activation != CudaActivation::kNone;
  return {rectified ? 0.0f : -kInfinity,
          activation == CudaActivation::kRelu6 ? 6.0f : kInfinity};
}

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_CUDA_DEVICE_ACTIVATION_H_
