#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/base/bfloat16.h"
#include "kernels/simd/cpu_features.h"
#include "tests/kernels/matrix.h"
#include "tests/kernels/simd/simd_math_functions.h"

namespace sfmamba::kernels {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// Returns 2^20 evenly spaced values from `low` to `high`.
std::vector<float> Grid(double low, double high) {
  std::vector<float> grid(1 << 20);
  const double step = (high - low) / (grid.size() - 1);
  for (size_t i = 0; i < grid.size(); ++i) grid[i] = low + step * i;
  return grid;
}

class SimdMathTest : public testing::TestWithParam<CpuIsa> {
 protected:
  void SetUp() override {
    if (GetParam() == CpuIsa::kScalar) {
      GTEST_SKIP() << "the scalar loops use the standard library";
    }
    functions_ = GetParam() == CpuIsa::kAvx2 ? MathFunctionsAvx2()
                                             : MathFunctionsAvx512();
  }

  SimdMathFunctions functions_;
};

INSTANTIATE_TEST_SUITE_P(Isa, SimdMathTest,
                         testing::ValuesIn(SupportedCpuIsas()), IsaName);

TEST_P(SimdMathTest, Exp2IsAccurate) {
  const std::vector<float> x = Grid(-126, 126);
  std::vector<float> y(x.size());
  functions_.exp2(x.data(), y.data(), x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_NEAR(y[i] / std::exp2(double{x[i]}), 1, 2.1e-7) << x[i];
  }
}

TEST_P(SimdMathTest, Exp2OfIntegersIsExact) {
  std::vector<float> x(256), y(256);
  for (int i = 0; i < 253; ++i) x[i] = i - 126;
  functions_.exp2(x.data(), y.data(), x.size());
  for (int i = 0; i < 253; ++i) EXPECT_EQ(y[i], std::ldexp(1.0f, i - 126));
}

TEST_P(SimdMathTest, Softplus2IsAccurate) {
  for (double range : {1.0, 44.0, 125.0}) {
    const std::vector<float> x = Grid(-range, range);
    std::vector<float> y(x.size());
    functions_.softplus2(x.data(), y.data(), x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const double exact = std::log1p(std::exp2(double{x[i]})) / std::log(2.0);
      ASSERT_NEAR(y[i] / exact, 1, 4e-7) << x[i];
    }
  }
}

TEST_P(SimdMathTest, Softplus2HasNoRange) {
  const float x[16] = {-kInf, -1e30f, -1000, -127, 127,
                       1000,  1e30f,  kInf,  kNan};
  float y[16];
  functions_.softplus2(x, y, 16);
  for (int i = 0; i < 4; ++i) {
    EXPECT_GE(y[i], 0);
    EXPECT_LE(y[i], std::ldexp(1.0f, -125));
  }
  for (int i = 4; i < 8; ++i) EXPECT_EQ(y[i], x[i]);
  EXPECT_TRUE(std::isnan(y[8]));
}

TEST_P(SimdMathTest, BothProductsGiveTheSameBitsInRange) {
  const std::vector<float> s = Grid(0, 125.9 / 3.7);
  std::vector<float> fast(s.size()), any(s.size());
  functions_.exp2_product(-3.7f, s.data(), fast.data(), s.size());
  functions_.exp2_product_any_range(-3.7f, s.data(), any.data(), s.size());
  EXPECT_EQ(std::memcmp(fast.data(), any.data(), s.size() * sizeof(float)), 0);
  for (size_t i = 0; i < s.size(); ++i) {
    const double exact = std::exp2(double{-3.7f} * s[i]);
    ASSERT_NEAR(fast[i] / exact, 1, 2.1e-7) << s[i];
  }
}

TEST_P(SimdMathTest, ProductOfAnyRangeUnderflowsToZeroAndKeepsNan) {
  const float s[16] = {0, 1e-38f, 126.5f, 149, 1000, 1e38f, kInf, kNan};
  float y[16];
  functions_.exp2_product_any_range(-1, s, y, 16);
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[1], 1);
  for (int i = 2; i < 7; ++i) EXPECT_EQ(y[i], 0) << s[i];
  EXPECT_TRUE(std::isnan(y[7]));
}

TEST_P(SimdMathTest, BFloat16RoundsAsTheScalarDoes) {
  std::vector<float> x(1 << 18);
  for (size_t i = 0; i < x.size(); ++i) {
    const uint32_t word =
        i * 0x4001u + 0x7fff;  // This gives all exponents, including ties.
    std::memcpy(&x[i], &word, sizeof(word));
  }
  std::vector<BFloat16> y(x.size());
  functions_.round(x.data(), y.data(), x.size());
  std::vector<float> wide(x.size());
  functions_.widen(y.data(), wide.data(), x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(y[i].bits, BFloat16(x[i]).bits) << i;
    const float expected = static_cast<float>(y[i]);
    ASSERT_EQ(std::memcmp(&wide[i], &expected, sizeof(float)), 0) << i;
  }
}

}  // namespace
}  // namespace sfmamba::kernels
