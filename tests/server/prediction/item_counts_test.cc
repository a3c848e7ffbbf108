#include "server/prediction/item_counts.h"

#include <string>

#include "gtest/gtest.h"
#include "server/errors/reasons.h"
#include "tests/server/observability/metric_values.h"

namespace sfmamba::prediction {
namespace {

using observability::ItemOutcome;
using observability::Values;

TEST(OutcomeTest, OnlyWhatWasNotAdmittedIsARefusal) {
  EXPECT_EQ(OutcomeOf(absl::OkStatus()), ItemOutcome::kOk);
  EXPECT_EQ(OutcomeOf(server::QueueFull("batch", "m", absl::Seconds(1))),
            ItemOutcome::kRejected);
  EXPECT_EQ(OutcomeOf(absl::ResourceExhaustedError("a quota")),
            ItemOutcome::kRejected);
  EXPECT_EQ(OutcomeOf(server::DeviceOutOfMemory(absl::Seconds(1))),
            ItemOutcome::kError);
  EXPECT_EQ(OutcomeOf(server::ResponseTooLarge(9, 8, "s")),
            ItemOutcome::kError);
  EXPECT_EQ(OutcomeOf(server::Expired("queue")), ItemOutcome::kExpired);
  EXPECT_EQ(OutcomeOf(server::Cancelled("queue")), ItemOutcome::kCancelled);
  EXPECT_EQ(OutcomeOf(server::DeviceError("m")), ItemOutcome::kError);
  EXPECT_EQ(OutcomeOf(server::ImageDecodeFailed("m")), ItemOutcome::kError);
}

class ItemCountsTest : public testing::Test {
 protected:
  double Value(const std::string& series) { return Values(metrics_)[series]; }
  // Adds up the counter over all reasons and queues.
  double Sum(const std::string& name) {
    double sum = 0;
    for (const auto& [series, value] : Values(metrics_)) {
      if (series.find(name + "{") == 0) sum += value;
    }
    return sum;
  }

  observability::Metrics metrics_{observability::BuildInfo()};
  const std::shared_ptr<observability::ModelMetrics> model_ =
      metrics_.Model("m", "1");
};

TEST_F(ItemCountsTest, ARefusalIsCountedByReasonAndQueue) {
  CountItem(server::QueueFull("decode", "m", absl::Seconds(1)), model_.get());
  EXPECT_EQ(Value("sfmamba_items_total{model=m,outcome=rejected,version=1}"),
            1);
  EXPECT_EQ(Value("sfmamba_admission_rejections_total{model=m,queue=decode,"
                  "reason=QUEUE_FULL}"),
            1);
  EXPECT_EQ(Sum("sfmamba_item_errors_total"), 0);
}

TEST_F(ItemCountsTest, AnErrorIsCountedByReasonAndIsNoRefusal) {
  CountItem(server::DeviceOutOfMemory(absl::Seconds(1)), model_.get());
  CountItem(absl::InternalError("without a reason"), model_.get());
  EXPECT_EQ(Value("sfmamba_item_errors_total{model=m,reason=DEVICE_OOM}"), 1);
  EXPECT_EQ(Value("sfmamba_item_errors_total{model=m,reason=INTERNAL}"), 1);
  EXPECT_EQ(Value("sfmamba_items_total{model=m,outcome=error,version=1}"), 2);
  EXPECT_EQ(Sum("sfmamba_admission_rejections_total"), 0);
}

TEST_F(ItemCountsTest, AMissedDeadlineIsCountedByStage) {
  CountItem(server::Expired("decode"), model_.get());
  CountItem(absl::DeadlineExceededError("without a stage"), model_.get());
  EXPECT_EQ(Value("sfmamba_deadline_misses_total{model=m,stage=decode}"), 1);
  EXPECT_EQ(Value("sfmamba_deadline_misses_total{model=m,stage=queue}"), 1);
}

TEST_F(ItemCountsTest, OkAndCancelledHaveAnOutcomeOnly) {
  CountItem(absl::OkStatus(), model_.get());
  CountItem(server::Cancelled("queue"), model_.get());
  EXPECT_EQ(Value("sfmamba_items_total{model=m,outcome=ok,version=1}"), 1);
  EXPECT_EQ(Value("sfmamba_items_total{model=m,outcome=cancelled,version=1}"),
            1);
  for (const char* name :
       {"sfmamba_admission_rejections_total", "sfmamba_item_errors_total",
        "sfmamba_deadline_misses_total"}) {
    EXPECT_EQ(Sum(name), 0) << name;
  }
}

TEST_F(ItemCountsTest, StagesThatWereNotReachedAreNotCounted) {
  StageTimes times;
  times.decode = absl::Milliseconds(1);
  times.queue = absl::Milliseconds(5);
  CountStages(server::Expired("queue"), times, model_.get());
  const std::string name =
      "sfmamba_stage_duration_seconds{model=m,outcome=expired,stage=";
  EXPECT_EQ(Value(name + "decode}"), 1);
  EXPECT_EQ(Value(name + "queue}"), 1);
  EXPECT_EQ(Sum("sfmamba_stage_duration_seconds"), 2);
}

}  // namespace
}  // namespace sfmamba::prediction
