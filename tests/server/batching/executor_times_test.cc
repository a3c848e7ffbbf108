// Tests what an executor knows about batch times, and which requests it refuses
// because of these times.

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/steady_clock.h"
#include "gtest/gtest.h"
#include "server/batching/admission.h"
#include "server/batching/executor.h"
#include "server/errors/error.h"
#include "server/host/processors.h"
#include "tests/server/batching/executor_fixture.h"

namespace sfmamba::batching {
namespace {

using ExecutorTimesTest = ExecutorTest;

TEST_F(ExecutorTimesTest, MeasuresBatchesBeforeTheFirstTaskIfNothingIsKnown) {
  options_.profile_budget = absl::Hours(1);
  const auto executor = MakeExecutor(6);
  ASSERT_EQ(executor->WaitUntilPrepared(), absl::OkStatus());
  std::vector<int> runs;
  for (const int images : {1, 2, 4, 6}) runs.insert(runs.end(), 6, images);
  EXPECT_EQ(sizes(), runs);
  std::vector<int> measured;
  for (const BatchTime& time : executor->Times()) {
    EXPECT_EQ(time.key.height, 4);
    EXPECT_GE(time.p95, time.median);
    measured.push_back(time.images);
  }
  EXPECT_EQ(measured, std::vector<int>({1, 2, 4, 6}));
}

TEST_F(ExecutorTimesTest, ARunBesideAnotherProgramIsNotTakenForTheTime) {
  options_.profile_budget = absl::Hours(1);
  FakeModel::Options model;
  model.before = [run = 0]() mutable {
    if (++run == 2 || run == 4) absl::SleepFor(absl::Milliseconds(500));
  };
  const auto executor = MakeExecutor(1, model);
  ASSERT_EQ(executor->WaitUntilPrepared(), absl::OkStatus());
  EXPECT_LT(executor->Times()[0].median, absl::Milliseconds(250));
}

TEST_F(ExecutorTimesTest, OnACpuLargeBatchesAreMultiplesOfWhatRunsAtOnce) {
  options_.profile_budget = absl::Hours(1);
  FakeModel::Options model;
  model.device = "cpu";
  const int max = 4 * server::UsableProcessors() + 3;
  const auto executor = MakeExecutor(max, model);
  ASSERT_EQ(executor->WaitUntilPrepared(), absl::OkStatus());
  const int measured = sizes().back();
  EXPECT_GE(measured, server::UsableProcessors());
  EXPECT_LT(measured, std::max(2, 2 * server::UsableProcessors()));
  EXPECT_EQ(executor->Times().back().images, max) << "it follows";
}

TEST_F(ExecutorTimesTest, MeasuresNoLongerThanItsBudgetAndNoDenseModel) {
  options_.profile_budget = absl::Nanoseconds(1);
  EXPECT_EQ(MakeExecutor(6)->WaitUntilPrepared(), absl::OkStatus());
  EXPECT_EQ(sizes(), std::vector<int>({1, 1}));
  FakeModel::Options cpu;
  cpu.device = "cpu";
  const int max = 2 * server::UsableProcessors() + 2;
  const auto executor = MakeExecutor(max, cpu);
  EXPECT_EQ(executor->WaitUntilPrepared(), absl::OkStatus());
  EXPECT_EQ(executor->Times().back().images,
            server::UsableProcessors() > 1 ? 1 : max)
      << "nothing follows from a part of what runs at once";
  FakeModel::Options dense;
  dense.task = model::VisionTask::kDetection;
  EXPECT_EQ(MakeExecutor(6, dense)->WaitUntilPrepared(), absl::OkStatus());
  EXPECT_EQ(sizes(), std::vector<int>({1, 1, 1, 1}));
}

TEST_F(ExecutorTimesTest, AModelWhoseValuesAreNotFiniteIsNotPrepared) {
  options_.profile_budget = absl::Nanoseconds(1);
  FakeModel::Options model;
  model.black_is_finite = false;
  const absl::Status status = MakeExecutor(6, model)->WaitUntilPrepared();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_NE(status.message().find("not finite"), std::string::npos) << status;
}

TEST_F(ExecutorTimesTest, MeasuringEndsWhenItIsToldToStop) {
  options_.profile_budget = absl::Hours(1);
  int asked = 0;
  options_.stop = [&asked] { return ++asked > 3; };
  EXPECT_TRUE(absl::IsCancelled(MakeExecutor(6)->WaitUntilPrepared()));
  EXPECT_EQ(sizes(), std::vector<int>({1, 1}));
}

TEST_F(ExecutorTimesTest, WhatIsKnownIsNotMeasuredAgain) {
  options_.profile_budget = absl::Hours(1);
  BatchTime time;
  time.key.height = time.key.width = 4;
  time.images = 2;
  time.median = time.p95 = absl::Seconds(7);
  options_.times = {time};
  const auto executor = MakeExecutor(6);
  ASSERT_EQ(executor->WaitUntilPrepared(), absl::OkStatus());
  EXPECT_TRUE(sizes().empty());
  ASSERT_EQ(executor->Times().size(), 1);
  EXPECT_EQ(executor->Times()[0].median, absl::Seconds(7));
}

TEST_F(ExecutorTimesTest, WhatWasPredictedIsInTheMetrics) {
  const absl::Duration known = absl::Seconds(7);
  options_.times = {{{4, 4, ImageType::kFloat32}, 1, known, known}};
  const auto executor = MakeExecutor(1);
  Answer answer;
  executor->Submit(MakeTask(answer, 1));
  EXPECT_TRUE(answer.Wait().ok());
  WaitUntil([this] { return Metric("sfmamba_cost_model_error_ratio") > 0; },
            "the batch's end in the metrics");
  EXPECT_LT(Metric("sfmamba_cost_model_error_ratio"), 1);
  const double wait = Metric("sfmamba_predicted_wait_seconds");
  EXPECT_GE(wait, 0);
  EXPECT_LT(wait, 7) << "nothing is left";
}

TEST_F(ExecutorTimesTest, ABatchThatFailedTeachesNothing) {
  const auto executor = MakeExecutor(1);
  Answer poison, good;
  executor->Submit(MakeTask(poison, kPoison));
  EXPECT_FALSE(poison.Wait().ok());
  EXPECT_TRUE(executor->Times().empty());
  executor->Submit(MakeTask(good, 1));
  EXPECT_TRUE(good.Wait().ok());
  WaitUntil([&] { return !executor->Times().empty(); }, "the batch's time");
}

TEST(HungAfterTest, GrowsWithTheBatch) {
  EXPECT_EQ(HungAfter(model::VisionTask::kClassification, 1),
            absl::Seconds(10.1));
  // The time limit is 10 s plus 100 ms for each image. These 100 ms are twice
  // the time that a slow CPU needs for an image.
  EXPECT_EQ(HungAfter(model::VisionTask::kClassification, 256),
            absl::Seconds(35.6));
  EXPECT_EQ(HungAfter(model::VisionTask::kDetection, 1), absl::Minutes(1));
  EXPECT_EQ(HungAfter(model::VisionTask::kSegmentation, 4), absl::Minutes(4));
}

TEST(HungAfterTest, GrowsWithTheLongestBatchSeen) {
  EXPECT_EQ(HungAfter(model::VisionTask::kClassification, 1, absl::Seconds(15)),
            absl::Seconds(40.1));
  EXPECT_EQ(HungAfter(model::VisionTask::kDetection, 1, absl::Seconds(40)),
            absl::Seconds(140));
}

class AdmitTest : public ExecutorTest {
 protected:
  // Makes an executor that knows that a batch of one image takes two seconds.
  std::unique_ptr<Executor> MakeKnownExecutor() {
    options_.batch.mode = BatchMode::kLatency;
    BatchTime time;
    time.key.height = time.key.width = 4;
    time.key.type = ImageType::kFloat32;
    time.images = 1;
    time.median = time.p95 = absl::Seconds(2);
    options_.times = {time};
    auto executor = MakeExecutor(1);
    EXPECT_EQ(executor->WaitUntilPrepared(), absl::OkStatus());
    request_.key = time.key;
    return executor;
  }
  absl::Time In(absl::Duration duration) {
    return base::SteadyNow() + duration;
  }
  // Asks for the admission of request_. Returns the status and releases the
  // room at once.
  absl::Status Try(Executor& executor) {
    return executor.Admit(request_, 0).status();
  }

  AdmissionRequest request_;
};

TEST_F(AdmitTest, RefusesWhatWouldBeLate) {
  const auto executor = MakeKnownExecutor();
  request_.deadline = In(absl::Seconds(1));
  const absl::Status status = Try(*executor);
  const server::ErrorDetail detail = server::GetErrorDetail(status);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(detail.reason, "PREDICTED_DEADLINE_MISS");
  EXPECT_EQ(server::GetMetadata("predicted_wait_ms", status), "0");
  request_.deadline = In(absl::Seconds(60));
  EXPECT_EQ(Try(*executor), absl::OkStatus());
  request_.answer = absl::Seconds(59);
  EXPECT_FALSE(Try(*executor).ok());
  request_.answer = absl::ZeroDuration();
  request_.decode = absl::Seconds(59);
  const absl::Status late = Try(*executor);
  int milliseconds = 0;
  EXPECT_TRUE(absl::SimpleAtoi(server::GetMetadata("predicted_wait_ms", late),
                               &milliseconds))
      << late;
  EXPECT_NEAR(milliseconds, 59'000, 100);
  request_.start_by = In(absl::Seconds(30));
  EXPECT_FALSE(Try(*executor).ok())
      << "it would wait for longer than max_queue_wait";
}

TEST_F(AdmitTest, CallersWithoutDeadlineAreNotRefused) {
  const auto executor = MakeKnownExecutor();
  request_.images = 64;
  EXPECT_EQ(Try(*executor), absl::OkStatus());
}

TEST_F(AdmitTest, NothingIsRefusedBecauseOfWhatIsNotKnown) {
  const auto executor = MakeExecutor(1);
  request_.deadline = In(absl::Seconds(1));
  EXPECT_EQ(Try(*executor), absl::OkStatus());
}

TEST_F(AdmitTest, ReservesWithinTheCaps) {
  const auto executor = MakeExecutor(1);
  request_.images = 64;
  EXPECT_TRUE(executor->Admit(request_, 1 << 20).ok());
  request_.images = 1 << 20;
  const absl::Status refused = Try(*executor);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(server::GetErrorDetail(refused).reason, "QUEUE_FULL");
}

TEST_F(AdmitTest, ARequestIsNotInItsOwnWay) {
  const auto executor = MakeKnownExecutor();
  request_.images = 3;
  request_.deadline = In(absl::Seconds(7));  // Three batches take 6 s.
  EXPECT_EQ(Try(*executor), absl::OkStatus());
}

// Many requests arrive together. Each one reserves its room before the next one
// is checked.
TEST_F(AdmitTest, OfABurstThoseAreAdmittedThatEndInTime) {
  const auto executor = MakeKnownExecutor();
  request_.deadline = In(absl::Seconds(11));  // Enough for five batches.
  absl::Mutex mu;
  std::vector<absl::StatusOr<Reservation>>
      admitted;  // Reservations of admitted requests.
  std::vector<std::thread> burst;
  for (int i = 0; i < 16; ++i) {
    burst.emplace_back([&] {
      absl::StatusOr<Reservation> room = executor->Admit(request_, 0);
      absl::MutexLock lock(&mu);
      if (room.ok()) admitted.push_back(std::move(room));
    });
  }
  for (std::thread& thread : burst) thread.join();
  EXPECT_EQ(admitted.size(), 5u);
}

TEST_F(AdmitTest, AdmitsNoMoreThanTheDrainCanEnd) {
  options_.drain_timeout = absl::Seconds(11);
  const auto executor = MakeKnownExecutor();
  request_.images = 64;
  EXPECT_EQ(Try(*executor), absl::OkStatus())
      << "a request alone may take longer";
  request_.images = 3;
  const auto held = executor->Admit(request_, 1);
  ASSERT_TRUE(held.ok());  // These images count as being decoded.
  request_.images = 2;
  EXPECT_EQ(Try(*executor), absl::OkStatus());
  request_.images = 3;
  const absl::Status status = Try(*executor);
  EXPECT_EQ(server::GetErrorDetail(status).reason, "QUEUE_FULL");
  EXPECT_EQ(server::GetMetadata("queue", status), "drain");
}

}  // namespace
}  // namespace sfmamba::batching
