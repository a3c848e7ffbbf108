#ifndef SFMAMBA_KERNELS_SIMD_CPU_FEATURES_H_
#define SFMAMBA_KERNELS_SIMD_CPU_FEATURES_H_

#include <string>
#include <vector>

namespace sfmamba::kernels {

// The instruction sets that kernels are written for. Each includes those before
// it: kAvx2 means AVX2 and FMA, kAvx512 adds AVX-512 F, BW, DQ and VL.
enum class CpuIsa { kScalar, kAvx2, kAvx512 };

// Returns the best one that the processor and the operating system support.
CpuIsa DetectCpuIsa();

// Returns the one that kernels use by default: DetectCpuIsa(), or a lesser one
// if the environment variable SFMAMBA_CPU_ISA names it (scalar, avx2, avx512).
// It is read at the first call only.
CpuIsa ActiveCpuIsa();

// Returns what is wrong with SFMAMBA_CPU_ISA if it names none of them, else "".
// Programs ask this when they start, because kernels then go on without it.
std::string CpuIsaError();

// Returns all from kScalar to DetectCpuIsa(), for tests.
std::vector<CpuIsa> SupportedCpuIsas();

// Returns "scalar", "avx2" or "avx512".
const char* CpuIsaName(CpuIsa isa);

// Returns whether the processor adds products of bf16 pairs natively
// (AVX512-BF16), which doubles the speed of matrix products, and ActiveCpuIsa()
// is kAvx512.
bool HasAvx512Bf16();

// Return whether the processor adds products of four pairs of bytes natively,
// and ActiveCpuIsa() is kAvx512 (AVX512-VNNI) or kAvx2 (AVX-VNNI).
bool HasAvx512Vnni();
bool HasAvxVnni();
// Returns whether it has one of the two, which matrix products in int8 need.
bool HasInt8();

// Returns whether the processor multiplies bf16 matrices natively (AMX), the
// operating system lets this process use the tile registers, which the first
// call asks it for, and SFMAMBA_CPU_ISA is not set to one of the names above.
bool HasAmxBf16();

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SIMD_CPU_FEATURES_H_
