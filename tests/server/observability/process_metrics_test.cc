#include <sys/resource.h>
#include <sys/time.h>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "server/observability/metrics.h"
#include "tests/server/observability/metric_values.h"
#include "tests/testing/patience.h"

namespace sfmamba::observability {
namespace {

TEST(ProcessMetricsTest, AreThoseOfThisProcess) {
  Metrics metrics(BuildInfo{});
  auto values = Values(metrics);
  EXPECT_GT(values["process_resident_memory_bytes{}"], 1e6);
  EXPECT_GT(values["process_open_fds{}"], 2);
  EXPECT_GT(values["sfmamba_memory_limit_bytes{}"],
            values["process_resident_memory_bytes{}"]);
  EXPECT_NEAR(values["process_start_time_seconds{}"],
              absl::ToUnixSeconds(absl::Now()), 3600);
}

TEST(ProcessMetricsTest, ItsProcessorTimeGrows) {
  Metrics metrics(BuildInfo{});
  const auto counted = [&metrics] {
    return Values(metrics)["process_cpu_seconds_total{}"];
  };
  WaitUntil([&] { return counted() > 0; }, "a tick of the processor's clock");
  rusage used = {};
  ASSERT_EQ(getrusage(RUSAGE_SELF, &used), 0);
  const auto seconds = [](const timeval& time) {
    return time.tv_sec + time.tv_usec * 1e-6;
  };
  // The kernel counts CPU time in ticks of a hundredth of a second.
  EXPECT_GT(counted(), seconds(used.ru_utime) + seconds(used.ru_stime) - 0.05);
  ASSERT_EQ(getrusage(RUSAGE_SELF, &used), 0);
  EXPECT_LT(counted(), 2 + seconds(used.ru_utime) + seconds(used.ru_stime));
}

}  // namespace
}  // namespace sfmamba::observability
