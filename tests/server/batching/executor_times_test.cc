// What an executor knows of its batches' times, and whom it refuses by that.

#include <memory>
#include <vector>

#include "base/steady_clock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/batching/admission.h"
#include "server/batching/executor.h"
#include "tests/server/batching/executor_fixture.h"

namespace sfmamba::batching {
namespace {

using ExecutorTimesTest = ExecutorTest;

TEST_F(ExecutorTimesTest, MeasuresBatchesBeforeTheFirstTaskIfNothingIsKnown) {
  options_.profile_budget = absl::Hours(1);
  const auto executor = MakeExecutor(6);
  ASSERT_EQ(executor->WaitUntilPrepared(), absl::OkStatus());
  EXPECT_EQ(sizes(), std::vector<int>({1, 1, 2, 2, 4, 4, 6, 6}));
  std::vector<int> measured;
  for (const BatchTime& time : executor->Times()) {
    EXPECT_EQ(time.key.height, 4);
    EXPECT_GE(time.p95, time.median);
    measured.push_back(time.images);
  }
  EXPECT_EQ(measured, std::vector<int>({1, 2, 4, 6}));
}

TEST_F(ExecutorTimesTest, MeasuresNoLongerThanItsBudgetAndNoDenseModel) {
  options_.profile_budget = absl::Nanoseconds(1);
  EXPECT_EQ(MakeExecutor(6)->WaitUntilPrepared(), absl::OkStatus());
  EXPECT_EQ(sizes(), std::vector<int>({1, 1}));
  FakeModel::Options dense;
  dense.task = model::VisionTask::kDetection;
  EXPECT_EQ(MakeExecutor(6, dense)->WaitUntilPrepared(), absl::OkStatus());
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

class AdmitTest : public ExecutorTest {
 protected:
  // An executor of batches of one image that take two seconds, as it knows.
  std::unique_ptr<Executor> MakeKnownExecutor(
      BatchMode mode = BatchMode::kLatency) {
    options_.batch.mode = mode;
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

  AdmissionRequest request_;
};

TEST_F(AdmitTest, RefusesWhatWouldBeLate) {
  const auto executor = MakeKnownExecutor();
  request_.deadline = In(absl::Seconds(1));
  const absl::Status status = executor->Admit(request_, absl::InfiniteFuture());
  const server::ErrorDetail detail = server::GetErrorDetail(status);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(detail.reason, "PREDICTED_DEADLINE_MISS");
  EXPECT_EQ(server::GetMetadata("predicted_wait_ms", status), "0");
  request_.deadline = In(absl::Seconds(60));
  EXPECT_EQ(executor->Admit(request_, absl::InfiniteFuture()),
            absl::OkStatus());
  request_.answer = absl::Seconds(59);
  EXPECT_FALSE(executor->Admit(request_, absl::InfiniteFuture()).ok());
  request_.answer = absl::ZeroDuration();
  request_.decode = absl::Seconds(59);
  EXPECT_FALSE(executor->Admit(request_, absl::InfiniteFuture()).ok());
  EXPECT_FALSE(executor->Admit(request_, In(absl::Seconds(30))).ok())
      << "it would wait for longer than max_queue_wait";
}

TEST_F(AdmitTest, CallersWithoutDeadlineAreNotRefused) {
  const auto executor = MakeKnownExecutor();
  request_.images = 64;
  EXPECT_EQ(executor->Admit(request_, absl::InfiniteFuture()),
            absl::OkStatus());
}

TEST_F(AdmitTest, NothingIsRefusedBecauseOfWhatIsNotKnown) {
  const auto executor = MakeExecutor(1);
  request_.deadline = In(absl::Seconds(1));
  EXPECT_EQ(executor->Admit(request_, absl::InfiniteFuture()),
            absl::OkStatus());
}

TEST_F(AdmitTest, TheFixedModeAdmitsAll) {
  const auto executor = MakeKnownExecutor(BatchMode::kFixed);
  request_.deadline = In(absl::Seconds(1));
  EXPECT_EQ(executor->Admit(request_, absl::InfiniteFuture()),
            absl::OkStatus());
}

TEST_F(AdmitTest, AdmitsNoMoreThanTheDrainCanEnd) {
  options_.drain_timeout = absl::Seconds(11);
  const auto executor = MakeKnownExecutor();
  request_.images = 64;
  EXPECT_EQ(executor->Admit(request_, absl::InfiniteFuture()), absl::OkStatus())
      << "a request alone may take longer";
  const auto held = executor->Reserve(3, 1);  // Three are being decoded.
  ASSERT_TRUE(held.ok());
  request_.images = 2;
  EXPECT_EQ(executor->Admit(request_, absl::InfiniteFuture()),
            absl::OkStatus());
  request_.images = 3;
  const absl::Status status = executor->Admit(request_, absl::InfiniteFuture());
  EXPECT_EQ(server::GetErrorDetail(status).reason, "QUEUE_FULL");
  EXPECT_EQ(server::GetMetadata("queue", status), "drain");
}

}  // namespace
}  // namespace sfmamba::batching
