#include "client/bench/arrival_process.h"

#include <cmath>
#include <map>

#include "gtest/gtest.h"

namespace sfmamba::client {
namespace {

ArrivalOptions AtRate(double rate, uint64_t seed) {
  ArrivalOptions options;
  options.rate = rate;
  options.seed = seed;
  return options;
}

TEST(ArrivalProcessTest, SameSeedSameArrivals) {
  ArrivalProcess a(AtRate(100, 5)), b(AtRate(100, 5)), c(AtRate(100, 6));
  const absl::Duration first = a.Next();
  EXPECT_EQ(first, b.Next());
  EXPECT_NE(first, c.Next());
}

// The gaps must have an exponential distribution. Its mean and its standard
// deviation are both 1/rate. For a uniform or constant gap they would differ.
TEST(ArrivalProcessTest, GapsAreExponential) {
  constexpr int kCount = 100000;
  ArrivalProcess arrivals(AtRate(50, 1));
  absl::Duration last = absl::ZeroDuration();
  double sum = 0, sum_of_squares = 0;
  for (int i = 0; i < kCount; ++i) {
    const absl::Duration now = arrivals.Next();
    const double gap = absl::ToDoubleSeconds(now - last);
    ASSERT_GE(gap, 0);
    sum += gap;
    sum_of_squares += gap * gap;
    last = now;
  }
  const double mean = sum / kCount;
  EXPECT_NEAR(mean, 0.02, 0.0004);
  EXPECT_NEAR(std::sqrt(sum_of_squares / kCount - mean * mean), 0.02, 0.0006);
}

TEST(ArrivalProcessTest, BurstsKeepTheMeanRateAndAreFollowedBySilence) {
  ArrivalOptions options = AtRate(1000, 3);
  options.burst_factor = 4;
  options.burst_period = absl::Milliseconds(200);
  ArrivalProcess arrivals(options);
  constexpr int kPeriods = 100;
  std::map<int64_t, int> in_period;
  for (absl::Duration at = arrivals.Next();
       at < kPeriods * absl::Milliseconds(200); at = arrivals.Next()) {
    absl::Duration within;
    ++in_period[absl::IDivDuration(at, options.burst_period, &within)];
    ASSERT_LT(within, absl::Milliseconds(50) + absl::Nanoseconds(1));
  }
  ASSERT_EQ(in_period.size(), kPeriods);
  int total = 0;
  for (const auto& [period, count] : in_period) total += count;
  // The expected number is 1000/s for 20 s. Its standard deviation is 141.
  EXPECT_NEAR(total, 20000, 600);
}

}  // namespace
}  // namespace sfmamba::client
