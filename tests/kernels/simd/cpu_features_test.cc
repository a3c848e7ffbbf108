#include "kernels/simd/cpu_features.h"

#include <string>

#include "gtest/gtest.h"

namespace sfmamba::kernels {
namespace {

TEST(CpuFeaturesTest, SupportedSetsEndWithTheDetectedOne) {
  const std::vector<CpuIsa> isas = SupportedCpuIsas();
  EXPECT_EQ(isas.front(), CpuIsa::kScalar);
  EXPECT_EQ(isas.back(), DetectCpuIsa());
}

TEST(CpuFeaturesTest, NamesAreThoseOfTheEnvironmentVariable) {
  EXPECT_STREQ(CpuIsaName(CpuIsa::kScalar), "scalar");
  EXPECT_STREQ(CpuIsaName(CpuIsa::kAvx2), "avx2");
  EXPECT_STREQ(CpuIsaName(CpuIsa::kAvx512), "avx512");
}

// Exits with the active instruction set. The first call decides which one this
// is, so each case runs in a separate process.
void ExitWithActiveIsa(const char* cap) {
  setenv("SFMAMBA_CPU_ISA", cap, 1);
  std::exit(static_cast<int>(ActiveCpuIsa()));
}

TEST(CpuFeaturesDeathTest, EnvironmentOnlyLowersTheActiveSet) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const int best = static_cast<int>(DetectCpuIsa());
  EXPECT_EXIT(ExitWithActiveIsa("scalar"), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(ExitWithActiveIsa("avx512"), testing::ExitedWithCode(best), "");
}

TEST(CpuFeaturesTest, AnotherNameIsAnError) {
  for (const char* name : {"", "scalar", "avx2", "avx512"}) {
    setenv("SFMAMBA_CPU_ISA", name, 1);
    EXPECT_EQ(CpuIsaError(), "");
  }
  for (const std::string name : {"mmx", "AVX2", "avx512 ", "1"}) {
    setenv("SFMAMBA_CPU_ISA", name.c_str(), 1);
    EXPECT_EQ(CpuIsaError(), "SFMAMBA_CPU_ISA: got \"" + name +
                                 "\", expected scalar, avx2 or avx512");
  }
  unsetenv("SFMAMBA_CPU_ISA");
  EXPECT_EQ(CpuIsaError(), "");
}

void ExitWithAmx(const char* cap) {
  setenv("SFMAMBA_CPU_ISA", cap, 1);
  std::exit(HasAmxBf16() ? 1 : 0);
}

TEST(CpuFeaturesDeathTest, AnyNamedSetIsWithoutAmx) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(ExitWithAmx("scalar"), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(ExitWithAmx("avx512"), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace sfmamba::kernels
