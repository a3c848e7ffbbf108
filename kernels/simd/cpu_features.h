#ifndef SFMAMBA_KERNELS_SIMD_CPU_FEATURES_H_
#define SFMAMBA_KERNELS_SIMD_CPU_FEATURES_H_

#include <string>
#include <vector>

namespace sfmamba::kernels {

// The instruction sets for which kernels are written. Each includes the sets
// before it. kAvx2 means AVX2 and FMA. kAvx512 adds AVX-512 F, BW, DQ and VL.
enum class CpuIsa { kScalar, kAvx2, kAvx512 };

// Returns the best instruction set that the CPU and the operating system
// support.
CpuIsa DetectCpuIsa();

// Returns the instruction set that kernels use by default. If the environment
// variable SFMAMBA_CPU_ISA is scalar, avx2 or avx512 and the CPU supports this
// set, returns it. Otherwise returns DetectCpuIsa(). The variable is read only
// at the first call.
CpuIsa ActiveCpuIsa();

// Returns an error message if SFMAMBA_CPU_ISA is set to an unknown name,
// otherwise "". Programs should check this at start, because kernels ignore an
// unknown name.
std::string CpuIsaError();

// Returns all instruction sets from kScalar to DetectCpuIsa(), for tests.
std::vector<CpuIsa> SupportedCpuIsas();

// Returns "scalar", "avx2" or "avx512".
const char* CpuIsaName(CpuIsa isa);

// Returns true if the CPU has AVX512-BF16 and ActiveCpuIsa() is kAvx512.
// AVX512-BF16 adds products of pairs of bf16 values, which doubles the speed of
// matrix products.
bool HasAvx512Bf16();

// Each returns true if the CPU has the named instructions and ActiveCpuIsa() is
// kAvx512 (for AVX512-VNNI) or kAvx2 (for AVX-VNNI). The instructions add four
// products of bytes to each 32-bit integer of a vector.
bool HasAvx512Vnni();
bool HasAvxVnni();
// Returns true if HasAvx512Vnni() or HasAvxVnni() is true. Fast int8 products
// need one of them.
bool HasInt8();

// Returns true if the CPU can multiply bf16 matrices with tile registers (AMX),
// the operating system lets this process use them, and SFMAMBA_CPU_ISA is not
// scalar, avx2 or avx512. The first call asks the operating system for
// permission.
bool HasAmxBf16();

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SIMD_CPU_FEATURES_H_
