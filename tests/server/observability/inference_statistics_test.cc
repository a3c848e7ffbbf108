#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "server/observability/model_metrics.h"

namespace sfmamba::observability {
namespace {

TEST(InferenceStatisticsTest, EachPartOfARequestHasItsOwnSum) {
  InferenceStatistics statistics;
  for (int i = 0; i < 2; ++i) {
    InferenceStatistics::Times times;
    times.total = absl::Seconds(10);
    times.queue = absl::Seconds(1);
    times.input = absl::Seconds(2);
    times.infer = absl::Seconds(3);
    times.output = absl::Seconds(4);
    statistics.RequestSucceeded(/*images=*/3, times);
  }
  statistics.RequestFailed(absl::Seconds(5));
  statistics.BatchRun(/*images=*/6, absl::Seconds(7));
  const InferenceStatistics::Snapshot sums = statistics.Get();
  EXPECT_EQ(sums.images, 6);
  EXPECT_EQ(sums.batches, 1);
  EXPECT_EQ(sums.success.count, 2);
  EXPECT_EQ(sums.success.time, absl::Seconds(20));
  EXPECT_EQ(sums.queue.time, absl::Seconds(2));
  EXPECT_EQ(sums.input.time, absl::Seconds(4));
  EXPECT_EQ(sums.infer.time, absl::Seconds(6));
  EXPECT_EQ(sums.output.time, absl::Seconds(8));
  EXPECT_EQ(sums.fail.count, 1);
  EXPECT_EQ(sums.fail.time, absl::Seconds(5));
  ASSERT_EQ(sums.by_batch_size.count(6), 1);
  EXPECT_EQ(sums.by_batch_size.at(6).time, absl::Seconds(7));
}

}  // namespace
}  // namespace sfmamba::observability
