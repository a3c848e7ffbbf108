#include "server/observability/device_metrics.h"

#include "base/steady_clock.h"
#include "gtest/gtest.h"
#include "tests/testing/patience.h"

namespace sfmamba::observability {
namespace {

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);

absl::Time At(double seconds) { return kStart + absl::Seconds(seconds); }

TEST(BusyMeterTest, IsIdleUntilABatchRuns) {
  BusyMeter meter;
  EXPECT_EQ(meter.Share(At(0)), 0);
  meter.Start(At(10));
  EXPECT_EQ(meter.Share(At(10)), 0);
  EXPECT_EQ(meter.Share(At(11)), 0.2);
}

TEST(BusyMeterTest, ABatchThatStillRunsCountsUpToTheWindow) {
  BusyMeter meter;
  meter.Start(At(0));
  EXPECT_EQ(meter.Share(At(5)), 1);
  EXPECT_EQ(meter.Share(At(60)), 1);
}

TEST(BusyMeterTest, AddsPeriodsUpAndForgetsThemAsTheWindowPasses) {
  BusyMeter meter;
  meter.Start(At(0));
  meter.End(At(1));
  meter.Start(At(2));
  meter.End(At(4));
  EXPECT_EQ(meter.Share(At(5)), 0.6);
  // The window now begins at 0.5 s. It still contains half of the first batch,
  // which ran from 0 s to 1 s.
  EXPECT_EQ(meter.Share(At(5.5)), 0.5);
  EXPECT_EQ(meter.Share(At(6)), 0.4);
  EXPECT_EQ(meter.Share(At(9)), 0);
}

TEST(BusyMeterTest, BatchesThatOverlapCountOnce) {
  BusyMeter meter;
  meter.Start(At(0));
  meter.Start(At(1));
  meter.End(At(2));
  EXPECT_EQ(meter.Share(At(2.5)), 0.5);
  meter.End(At(3));
  EXPECT_EQ(meter.Share(At(5)), 0.6);
}

TEST(BusyMeterTest, AnEndLongAfterOthersLeavesNothingOfThem) {
  BusyMeter meter;
  meter.Start(At(0));
  meter.End(At(1));
  meter.Start(At(100));
  meter.End(At(101));
  EXPECT_EQ(meter.Share(At(101)), 0.2);
}

TEST(DeviceMetricsTest, IsNoLongerBusyOnceItsBatchHasEnded) {
  DeviceMetrics device;
  device.BatchStarted();
  device.BatchEnded();
  const double share = device.BusyShare();
  const absl::Time then = base::SteadyNow();
  WaitUntil([then] { return base::SteadyNow() > then; }, "the next moment");
  EXPECT_LE(device.BusyShare(), share);
}

}  // namespace
}  // namespace sfmamba::observability
