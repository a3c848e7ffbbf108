#include "server/observability/load_meter.h"

#include "gtest/gtest.h"

namespace sfmamba::observability {
namespace {

constexpr absl::Time kStart = absl::UnixEpoch();
constexpr absl::Duration kTarget = absl::Milliseconds(500);

// Ends a request every 10 ms for ten seconds. Each reports a wait of `wait`.
Load Steady(LoadMeter* meter, absl::Time begin, bool answered,
            absl::Duration wait) {
  Load load;
  for (int i = 0; i < 1000; ++i) {
    load =
        meter->RequestEnded(answered, wait, begin + i * absl::Milliseconds(10));
  }
  return load;
}

TEST(LoadMeterTest, ASteadyLoadIsReportedAsItIs) {
  LoadMeter meter(kTarget);
  const Load load = Steady(&meter, kStart, true, absl::Milliseconds(200));
  EXPECT_NEAR(load.utilization, 0.4, 0.001);
  EXPECT_NEAR(load.answers_per_second, 100, 5);
  EXPECT_EQ(load.errors_per_second, 0);
}

TEST(LoadMeterTest, ErrorsHaveARateOfTheirOwn) {
  LoadMeter meter(kTarget);
  const Load load = Steady(&meter, kStart, false, absl::ZeroDuration());
  EXPECT_EQ(load.answers_per_second, 0);
  EXPECT_NEAR(load.errors_per_second, 100, 5);
}

TEST(LoadMeterTest, TheUtilizationIsBetweenZeroAndTwo) {
  LoadMeter meter(kTarget);
  EXPECT_EQ(Steady(&meter, kStart, true, absl::InfiniteDuration()).utilization,
            2);
  LoadMeter unknown(kTarget);  // Without samples, the prediction is negative.
  EXPECT_EQ(unknown.RequestEnded(true, -absl::Seconds(1), kStart).utilization,
            0);
}

TEST(LoadMeterTest, AServerThatWasIdleReportsNoUtilization) {
  LoadMeter meter(kTarget);
  Steady(&meter, kStart, true, absl::Seconds(1));
  const Load load =
      meter.RequestEnded(true, absl::ZeroDuration(), kStart + absl::Minutes(2));
  EXPECT_NEAR(load.utilization, 0, 1e-9);
  EXPECT_NEAR(load.answers_per_second, 1 / 3., 1e-3);
}

TEST(LoadMeterTest, ATimeThatGoesBackChangesNothingButTheCount) {
  LoadMeter meter(kTarget);
  meter.RequestEnded(true, absl::Seconds(1), kStart);
  const Load load =
      meter.RequestEnded(true, absl::ZeroDuration(), kStart - absl::Seconds(1));
  EXPECT_EQ(load.utilization, 2);
  EXPECT_NEAR(load.answers_per_second, 2 / 3., 1e-9);
}

}  // namespace
}  // namespace sfmamba::observability
