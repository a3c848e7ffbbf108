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

// CPUID sets this bit of EAX in leaf 7, subleaf 1.
constexpr unsigned int kAvxVnni = 1u << 4;
constexpr CpuIsa kAll[] = {CpuIsa::kScalar, CpuIsa::kAvx2, CpuIsa::kAvx512};

// Returns a bit for each state component that the operating system saves.
__attribute__((target("xsave"))) unsigned long long ReadXcr0() {
  return _xgetbv(0);
}

// The value of the environment variable; "" if it is not set.
std::string NameInEnvironment() {
  const char* name = std::getenv("SFMAMBA_CPU_ISA");
  return name == nullptr ? "" : name;
}

// The instruction set that the environment names.
std::optional<CpuIsa> NamedByEnvironment() {
  for (CpuIsa isa : kAll) {
    if (NameInEnvironment() == CpuIsaName(isa)) return isa;
  }
  return std::nullopt;
}

// Returns whether the processor has AMX for bf16, and the operating system
// saves the tile registers.
bool DetectAmxBf16() {
  constexpr unsigned kOsxsave = 1u << 27;  // Leaf 1, ecx.
  constexpr unsigned kAmx =
      (1u << 22) | (1u << 24);  // Leaf 7, edx: bf16, tile.
  // XCR0: the tiles' configuration and their data.
  constexpr unsigned long long kTileState = 3u << 17;
  unsigned eax, ebx, ecx, edx;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & kOsxsave))
    return false;
  if ((ReadXcr0() & kTileState) != kTileState) return false;
  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return false;
  return (edx & kAmx) == kAmx;
}

// Linux gives the tiles' data, which is part of every thread's state, only to
// processes that ask for it. All threads then have it.
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
  // Clang 14 does not know the name "avxvnni".
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
