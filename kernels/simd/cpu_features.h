#ifndef SFMAMBA_KERNELS_SIMD_CPU_FEATURES_H_
#define SFMAMBA_KERNELS_SIMD_CPU_FEATURES_H_

#include <vector>

namespace sfmamba::kernels {

// The instruction sets that kernels are written for, each including the ones
// before it. kAvx2: AVX2 and FMA. kAvx512: also AVX-512 F, BW, DQ and VL.
enum class CpuIsa { kScalar, kAvx2, kAvx512 };

// The best one that this processor and its operating system offer.
CpuIsa DetectCpuIsa();

// The one that kernels use unless told otherwise: DetectCpuIsa(), or less if
// the environment variable SFMAMBA_CPU_ISA (scalar, avx2, avx512) says so.
// Decided at the first call. Any other value of the variable has no effect.
CpuIsa ActiveCpuIsa();

// From kScalar to DetectCpuIsa(), for tests.
std::vector<CpuIsa> SupportedCpuIsas();

// "scalar", "avx2" or "avx512".
const char* CpuIsaName(CpuIsa isa);

// Whether the processor multiplies bf16 matrices natively (AMX) and the
// operating system saves the tiles. Without it, bf16 matrix products are slower
// than fp32.
bool HasAmxBf16();

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SIMD_CPU_FEATURES_H_
