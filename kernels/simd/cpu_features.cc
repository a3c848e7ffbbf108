#include "kernels/simd/cpu_features.h"

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>

namespace sfmamba::kernels {
namespace {

// The bit of EAX in CPUID leaf 7, subleaf 1, that is set if the CPU has
// AVX-VNNI.
constexpr unsigned int kAvxVnni = 1u << 4;
constexpr CpuIsa kAll[] = {CpuIsa::kScalar, CpuIsa::kAvx2, CpuIsa::kAvx512};

// Returns the register XCR0. A bit is set for each state component that the
// operating system saves.
__attribute__((target("xsave"))) unsigned long long ReadXcr0() {
  return _xgetbv(0);
}

// Returns the value of SFMAMBA_CPU_ISA, or "" if it is not set.
std::string NameInEnvironment() {
  const char* name = std::getenv("SFMAMBA_CPU_ISA");
  return name == nullptr ? "" : name;
}

// Returns the instruction set that SFMAMBA_CPU_ISA names, or nullopt if it
// names none.
std::optional<CpuIsa> NamedByEnvironment() {
  for (CpuIsa isa : kAll) {
    if (NameInEnvironment() == CpuIsaName(isa)) return isa;
  }
  return std::nullopt;
}

// Returns true if the CPU has AMX for bf16 and the operating system saves the
// tile registers.
bool DetectAmxBf16() {
  // The bit of ECX in CPUID leaf 1 for XGETBV.
  constexpr unsigned kOsxsave = 1u << 27;
  // The bits of EDX in CPUID leaf 7 for AMX-BF16 and for tiles.
  constexpr unsigned kAmx = (1u << 22) | (1u << 24);
  // The bits of XCR0 for the configuration and the data of the tile registers.
  constexpr unsigned long long kTileState = 3u << 17;
  unsigned eax, ebx, ecx, edx;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & kOsxsave))
    return false;
  if ((ReadXcr0() & kTileState) != kTileState) return false;
  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return false;
  return (edx & kAmx) == kAmx;
}

// Asks Linux for permission to use the tile registers, and returns true if
// Linux grants it. The permission holds for all threads of the process.
bool MayUseTiles() {
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

CpuIsa DetectCpuIsa() {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    return CpuIsa::kScalar;
  }
  const bool avx512 =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return avx512 ? CpuIsa::kAvx512 : CpuIsa::kAvx2;
}

CpuIsa ActiveCpuIsa() {
  static const CpuIsa active =
      std::min(NamedByEnvironment().value_or(CpuIsa::kAvx512), DetectCpuIsa());
  return active;
}

std::string CpuIsaError() {
  const std::string name = NameInEnvironment();
  if (name.empty() || NamedByEnvironment().has_value()) return "";
  return "SFMAMBA_CPU_ISA: got \"" + name +
         "\", expected scalar, avx2 or avx512";
}

std::vector<CpuIsa> SupportedCpuIsas() {
  std::vector<CpuIsa> isas;
  for (CpuIsa isa : kAll) {
    if (isa <= DetectCpuIsa()) isas.push_back(isa);
  }
  return isas;
}

const char* CpuIsaName(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kScalar:
      return "scalar";
    case CpuIsa::kAvx2:
      return "avx2";
    case CpuIsa::kAvx512:
      return "avx512";
  }
  return "unknown";
}

bool HasAvx512Bf16() {
  return ActiveCpuIsa() == CpuIsa::kAvx512 &&
         __builtin_cpu_supports("avx512bf16");
}

bool HasAvx512Vnni() {
  return ActiveCpuIsa() == CpuIsa::kAvx512 &&
         __builtin_cpu_supports("avx512vnni");
}

bool HasAvxVnni() {
  // __builtin_cpu_supports() of Clang 14 does not know "avxvnni".
  unsigned int eax, ebx, ecx, edx;
  return ActiveCpuIsa() == CpuIsa::kAvx2 &&
         __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) && (eax & kAvxVnni);
}

bool HasInt8() { return HasAvx512Vnni() || HasAvxVnni(); }

bool HasAmxBf16() {
  static const bool has =
      ActiveCpuIsa() == CpuIsa::kAvx512 && HasAvx512Bf16() &&
      !NamedByEnvironment().has_value() && DetectAmxBf16() && MayUseTiles();
  return has;
}

}  // namespace sfmamba::kernels
