#ifndef SFMAMBA_KERNELS_LINEAR_SILU_H_
#define SFMAMBA_KERNELS_LINEAR_SILU_H_

#include <cstdint>

#include "kernels/base/bfloat16.h"
#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// The activation of a gated block: GELU in its erf form, or SiLU.
enum class GateActivation { kGeluErf, kSilu };

// Computes y[i] = v / (1 + exp(-v)) with v = x[i], for i < count. y may be the
// same array as x. T is float or BFloat16. The arithmetic is fp32. Runs on the
// calling thread.
template <typename T>
void SiluCpu(const T* x, int64_t count, T* y, CpuIsa isa = ActiveCpuIsa());

// One function per instruction set. The CPU must support the instruction set.
template <typename T>
void SiluScalar(const T* x, int64_t count, T* y);
template <typename T>
void SiluAvx2(const T* x, int64_t count, T* y);
template <typename T>
void SiluAvx512(const T* x, int64_t count, T* y);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_LINEAR_SILU_H_
