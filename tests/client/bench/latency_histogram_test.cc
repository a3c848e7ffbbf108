#include "client/bench/latency_histogram.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace sfmamba::client {
namespace {

constexpr double kPercents[] = {0.1, 1, 25, 50, 90, 99, 99.9, 100};

TEST(LatencyHistogramTest, EmptyIsZero) {
  const LatencyHistogram histogram;
  EXPECT_EQ(histogram.count(), 0);
  EXPECT_EQ(histogram.Mean(), absl::ZeroDuration());
  EXPECT_EQ(histogram.Percentile(99), absl::ZeroDuration());
}

TEST(LatencyHistogramTest, OneValueIsEveryPercentile) {
  LatencyHistogram histogram;
  histogram.Record(absl::Nanoseconds(123456789));
  for (const double percent : kPercents) {
    EXPECT_EQ(histogram.Percentile(percent), absl::Nanoseconds(123456789));
  }
  EXPECT_EQ(histogram.Mean(), absl::Nanoseconds(123456789));
}

TEST(LatencyHistogramTest, SmallValuesAreExact) {
  LatencyHistogram histogram;
  for (int i = 1; i <= 200; ++i) histogram.Record(absl::Nanoseconds(i));
  EXPECT_EQ(histogram.Percentile(50), absl::Nanoseconds(100));
  EXPECT_EQ(histogram.Percentile(99.5), absl::Nanoseconds(199));
  EXPECT_EQ(histogram.Percentile(100), absl::Nanoseconds(200));
  EXPECT_EQ(histogram.Mean(), absl::Nanoseconds(100.5));
}

// A wrong bucket would be noticed at powers of two and next to them.
TEST(LatencyHistogramTest, EachValueIsKeptWithinItsBucketWidth) {
  for (int exponent = 0; exponent < 62; ++exponent) {
    for (const int64_t step : {-1, 0, 1}) {
      const int64_t value =
          std::max<int64_t>(0, (int64_t{1} << exponent) + step);
      LatencyHistogram histogram;
      histogram.Record(absl::Nanoseconds(value));
      // Without this value, Max() would limit the percentile.
      histogram.Record(absl::Hours(1e6));
      const int64_t kept = absl::ToInt64Nanoseconds(histogram.Percentile(50));
      EXPECT_GE(kept, value);
      EXPECT_LE(kept - value, value / 128);
    }
  }
}

TEST(LatencyHistogramTest, PercentilesAgreeWithSortedValues) {
  std::mt19937_64 random(7);
  LatencyHistogram histogram;
  std::vector<double> values;
  for (int i = 0; i < 20000; ++i) {
    const double value = std::floor(std::exp((random() >> 11) * 0x1p-53 * 20));
    values.push_back(value);
    histogram.Record(absl::Nanoseconds(value));
  }
  std::sort(values.begin(), values.end());
  for (const double percent : kPercents) {
    const size_t rank = std::ceil(percent / 100 * values.size());
    const double expected = values[rank - 1];
    const double actual =
        absl::ToDoubleNanoseconds(histogram.Percentile(percent));
    EXPECT_GE(actual, expected) << percent;
    EXPECT_LE(actual, expected * (1 + 1 / 128.0)) << percent;
  }
  EXPECT_EQ(histogram.Max(), absl::Nanoseconds(values.back()));
}

TEST(LatencyHistogramTest, AddRecordsWhatTheOtherHas) {
  LatencyHistogram both, low, high;
  for (int i = 1; i <= 100; ++i) {
    low.Record(absl::Nanoseconds(i));
    high.Record(absl::Nanoseconds(100 + i));
  }
  both.Add(high);
  both.Add(low);
  EXPECT_EQ(both.count(), 200);
  EXPECT_EQ(both.Percentile(50), absl::Nanoseconds(100));
  EXPECT_EQ(both.Max(), absl::Nanoseconds(200));
  EXPECT_EQ(both.Mean(), absl::Nanoseconds(100.5));
}

TEST(LatencyHistogramTest, NegativeCountsAsZero) {
  LatencyHistogram histogram;
  histogram.Record(absl::Nanoseconds(-5));
  EXPECT_EQ(histogram.count(), 1);
  EXPECT_EQ(histogram.Max(), absl::ZeroDuration());
}

TEST(LatencyHistogramTest, TakesTheLongestDuration) {
  LatencyHistogram histogram;
  histogram.Record(absl::InfiniteDuration());
  EXPECT_EQ(histogram.count(), 1);
  EXPECT_GT(histogram.Percentile(50), absl::Hours(24 * 365 * 200));
}

}  // namespace
}  // namespace sfmamba::client
