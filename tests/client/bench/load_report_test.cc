#include "client/bench/load_report.h"

#include "client/rpc/rpc_status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/fake_vision_server.h"

namespace sfmamba::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr absl::Duration kWarmup = absl::Seconds(1);
constexpr absl::Duration kEnd = absl::Seconds(11);

// Returns a request that is due at `due` and answered `latency` later. Its
// deadline is 100 ms after `due`.
SentRequest Answered(absl::Duration due, absl::Duration latency,
                     absl::Status status = absl::OkStatus()) {
  SentRequest request;
  request.due = due;
  request.sent = due + absl::Milliseconds(5);
  request.received = due + latency;
  request.deadline = absl::Milliseconds(100);
  request.status = status;
  request.images = status.ok() ? 2 : 0;
  return request;
}

TEST(LoadTallyTest, TellsInTimeLateAndFailed) {
  LoadTally tally({"all"}, kWarmup, kEnd);
  const absl::Duration due = absl::Seconds(2);
  tally.CountSent(Answered(due, absl::Milliseconds(40)));
  tally.CountSent(Answered(due, absl::Milliseconds(100)));
  tally.CountSent(Answered(due, absl::Milliseconds(101)));
  tally.CountSent(
      Answered(due, absl::Milliseconds(50), absl::DeadlineExceededError("")));
  tally.CountOverCap(0, due);
  tally.CountMissed(0, due);
  tally.CountMissed(0, due);
  const LoadReport report = tally.Report(false);
  EXPECT_EQ(report.all.requests, 7);
  EXPECT_EQ(report.all.sent, 4);
  EXPECT_EQ(report.all.in_time, 2);
  EXPECT_EQ(report.all.late, 1);
  EXPECT_EQ(report.all.failed, 1);
  EXPECT_EQ(report.all.over_cap, 1);
  EXPECT_EQ(report.all.missed, 2);
  EXPECT_THAT(report.all.codes,
              ElementsAre(Pair("DEADLINE_EXCEEDED", 1), Pair("OK", 3)));
  // The latencies contain only requests that were answered in time.
  EXPECT_EQ(report.all.latency.count(), 2);
  EXPECT_EQ(report.all.latency.Max(), absl::Milliseconds(100));
  EXPECT_EQ(report.all.latency_from_sending.Max(), absl::Milliseconds(95));
  // The delay of sending contains all sent requests.
  EXPECT_EQ(report.delay.count(), 4);
  EXPECT_EQ(report.delay.Max(), absl::Milliseconds(5));
  EXPECT_THAT(report.classes, IsEmpty());
}

TEST(LoadTallyTest, RatesCountWhatCameDuringTheMeasuredTime) {
  LoadTally tally({"all"}, kWarmup, kEnd);
  const absl::Duration latency = absl::Milliseconds(90);
  // This request is due before the measured time and answered during it.
  tally.CountSent(Answered(kWarmup - absl::Milliseconds(50), latency));
  for (int i = 0; i < 30; ++i) {
    tally.CountSent(Answered(absl::Seconds(3), latency));
  }
  // The first request is answered after the measured time, the second before
  // it.
  tally.CountSent(Answered(kEnd - absl::Milliseconds(50), latency));
  tally.CountSent(Answered(absl::ZeroDuration(), latency));
  const LoadReport report = tally.Report(false);
  EXPECT_EQ(report.elapsed, absl::Seconds(10));
  EXPECT_EQ(report.images, 62);
  EXPECT_DOUBLE_EQ(report.images_per_second, 6.2);
  EXPECT_DOUBLE_EQ(report.goodput, 3.1);
  // A request counts if it was due during the measured time.
  EXPECT_EQ(report.all.requests, 31);
  EXPECT_EQ(report.all.in_time, 31);
}

TEST(LoadTallyTest, LateAnswersAreNoGoodput) {
  LoadTally tally({"all"}, kWarmup, kEnd);
  tally.CountSent(Answered(absl::Seconds(2), absl::Seconds(3)));
  const LoadReport report = tally.Report(false);
  EXPECT_EQ(report.goodput, 0);
  EXPECT_DOUBLE_EQ(report.images_per_second, 0.2);
}

TEST(LoadTallyTest, RatesMayEndWithTheLastAnswer) {
  LoadTally tally({"all"}, kWarmup, absl::InfiniteDuration());
  EXPECT_EQ(tally.Report(true).elapsed, absl::ZeroDuration());
  EXPECT_EQ(tally.Report(true).goodput, 0);
  tally.CountSent(Answered(absl::Seconds(4.95), absl::Milliseconds(50)));
  tally.CountSent(Answered(absl::Seconds(2), absl::Milliseconds(50)));
  const LoadReport report = tally.Report(true);
  EXPECT_EQ(report.elapsed, absl::Seconds(4));
  EXPECT_DOUBLE_EQ(report.goodput, 0.5);
}

TEST(LoadTallyTest, ClassesAreCountedApart) {
  LoadTally tally({"small", "large"}, kWarmup, kEnd);
  SentRequest request = Answered(absl::Seconds(2), absl::Milliseconds(10));
  tally.CountSent(request);
  request =
      Answered(absl::Seconds(2), absl::Milliseconds(20),
               FromGrpcStatus(FakeError(grpc::StatusCode::RESOURCE_EXHAUSTED,
                                        "full", "QUEUE_FULL")));
  request.class_index = 1;
  tally.CountSent(request);
  tally.CountOverCap(1, absl::Seconds(2));
  // This request was due during the warm-up, so it does not count.
  tally.CountMissed(1, absl::ZeroDuration());
  const LoadReport report = tally.Report(false);
  ASSERT_EQ(report.classes.size(), 2);
  EXPECT_EQ(report.classes[0].class_name, "small");
  EXPECT_EQ(report.classes[0].requests, 1);
  EXPECT_EQ(report.classes[0].in_time, 1);
  EXPECT_EQ(report.classes[1].class_name, "large");
  EXPECT_EQ(report.classes[1].requests, 2);
  EXPECT_EQ(report.classes[1].over_cap, 1);
  EXPECT_EQ(report.classes[1].missed, 0);
  EXPECT_THAT(report.classes[1].codes,
              ElementsAre(Pair("RESOURCE_EXHAUSTED (QUEUE_FULL)", 1)));
  EXPECT_EQ(report.all.requests, 3);
  EXPECT_EQ(report.all.latency.count(), 1);
}

TEST(LoadTallyTest, StagesAndBatchesAreMeans) {
  LoadTally tally({"all"}, kWarmup, kEnd);
  v1::Timing timing;
  for (const int batch_size : {4, 1}) {
    timing.set_batch_size(batch_size);
    timing.mutable_queue()->set_nanos(batch_size * 1'000'000);
    SentRequest request = Answered(absl::Seconds(2), absl::Milliseconds(10));
    request.timing = &timing;
    tally.CountSent(request);
  }
  const LoadReport report = tally.Report(false);
  EXPECT_EQ(report.stages.queue, absl::Microseconds(2500));
  // The first answer has two of a batch's four images. The second answer has
  // two batches of one image. Together these are 4 images in 2.5 batches.
  EXPECT_DOUBLE_EQ(report.mean_batch_size, 1.6);
}

}  // namespace
}  // namespace sfmamba::client
