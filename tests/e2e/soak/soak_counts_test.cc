#include "tests/e2e/soak/soak_counts.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "tests/testing/http.h"

namespace sfmamba {
namespace {

constexpr double kMiB = 1 << 20;

TEST(GrowthTest, IsThatOfTenThousandRequests) {
  std::vector<MemorySample> samples;
  for (int i = 0; i <= 10; ++i) {
    samples.push_back({1000.0 * i, 100 * kMiB + 0.5 * kMiB * i});
  }
  EXPECT_NEAR(Growth(samples) / kMiB, 5, 1e-9);
}

TEST(GrowthTest, LeavesOutTheWarmUp) {
  std::vector<MemorySample> samples;
  for (int i = 9; i >= 0; --i) {  // The order does not matter.
    samples.push_back({1000.0 * i, i < 2 ? 10 * kMiB : 100 * kMiB});
  }
  EXPECT_NEAR(Growth(samples), 0, 1e-3);
}

TEST(GrowthTest, TooFewSamplesTellNothing) {
  EXPECT_TRUE(std::isnan(Growth({})));
  EXPECT_TRUE(std::isnan(Growth({{1, 1}})));
}

TEST(SumOfTest, CountsEachSeriesOnceWithLabelsAndWithout) {
  EXPECT_EQ(SumOf({{"a", 1}, {"a{b=\"c\"}", 2}, {"ab", 4}}, "a", {}), 3);
}

TEST(CountsTest, AreReadable) {
  EXPECT_EQ(ToText({}), " none");
  EXPECT_EQ(ToText({{"OK", 2}, {"CANCELLED", 1}}), " CANCELLED 1 OK 2");
}

}  // namespace
}  // namespace sfmamba
