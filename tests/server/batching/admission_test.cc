#include "server/batching/admission.h"

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace sfmamba::batching {
namespace {

const absl::Time kNow = absl::UnixEpoch() + absl::Hours(1);

absl::Duration Ms(double milliseconds) {
  return absl::Milliseconds(milliseconds);
}

// The batches of 1, 2, 3 and 4 images take 11, 12, 13 and 14 ms. 95 % of them
// take at most 1 ms more.
class AdmissionTest : public ::testing::Test {
 protected:
  AdmissionTest() {
    for (int n = 1; n <= 4; ++n) {
      curve_.Set(n, {Ms(10 + n), Ms(11 + n)}, kNow);
    }
    state_.curve = &curve_;
  }

  AdmissionEstimate Estimate() const {
    return EstimateAdmission(state_, request_, kNow);
  }
  double Start() const {
    return absl::ToDoubleMilliseconds(Estimate().start - kNow);
  }
  double Finish() const {
    return absl::ToDoubleMilliseconds(Estimate().finish - kNow);
  }
  double Drained() const {
    return absl::ToDoubleMilliseconds(Estimate().drained - kNow);
  }

  BatchCurve curve_{4};
  AdmissionState state_;
  AdmissionRequest request_;
};

TEST_F(AdmissionTest, AnIdleDeviceStartsAtOnce) {
  EXPECT_NEAR(Start(), 0, 1e-3);
  EXPECT_NEAR(Finish(), 12, 1e-3);
  EXPECT_NEAR(Drained(), 11, 1e-3);
}

TEST_F(AdmissionTest, WaitsForTheBatchThatRuns) {
  state_.busy_until = {kNow + Ms(7)};
  EXPECT_NEAR(Start(), 7, 1e-3);
  EXPECT_NEAR(Finish(), 19, 1e-3);
  state_.busy_until = {kNow - Ms(7)};  // The batch takes longer than expected.
  EXPECT_NEAR(Start(), 0, 1e-3);
}

TEST_F(AdmissionTest, ALongWaitIsLessCertainThanABatch) {
  state_.busy_until = {kNow + Ms(32)};
  EXPECT_NEAR(Finish(), 32 + 12, 1e-3);
  state_.busy_until = {kNow + Ms(320)};
  EXPECT_NEAR(Start(), 320, 1e-3);
  EXPECT_NEAR(Finish(), 320 + 11 + 10, 1e-3);
}

TEST_F(AdmissionTest, EachBatchWaitsForOtherModelsOnTheDevice) {
  state_.turn_wait = Ms(28);  // A full batch takes 14 ms.
  EXPECT_NEAR(Start(), 28, 1e-3);
  EXPECT_NEAR(Drained(), 33, 1e-3);
  state_.work.earlier = state_.drain.earlier = Ms(10);
  EXPECT_NEAR(Start(), 58, 1e-3);
  EXPECT_NEAR(Drained(), 63, 1e-3);
}

TEST_F(AdmissionTest, TellsWhenTheRequestAloneWouldBeDone) {
  request_.images = 2;
  state_.drain.earlier = Ms(100);
  const AdmissionEstimate estimate = Estimate();
  EXPECT_EQ(estimate.drained_alone - kNow, Ms(12));
  EXPECT_GT(estimate.drained, estimate.drained_alone);
}

TEST_F(AdmissionTest, DecodingAndEncodingTakeTime) {
  request_.decode = Ms(20);
  request_.answer = Ms(3);
  EXPECT_NEAR(Start(), 20, 1e-3);
  EXPECT_NEAR(Finish(), 35, 1e-3);
  EXPECT_NEAR(Drained(), 20, 1e-3);
}

TEST_F(AdmissionTest, MoreUrgentTasksOfTheKeyFillBatches) {
  state_.mates = 3;
  EXPECT_NEAR(Start(), 0, 1e-3);
  EXPECT_NEAR(Finish(), 15, 1e-3);
  state_.mates = 9;
  EXPECT_NEAR(Start(), 28, 1e-3);
  EXPECT_NEAR(Finish(), 28 + 13, 1e-3);
}

TEST_F(AdmissionTest, TheLastImageOfARequestCounts) {
  request_.images = 9;
  EXPECT_NEAR(Start(), 28, 1e-3);
  EXPECT_NEAR(Finish(), 28 + 12, 1e-3);
}

TEST_F(AdmissionTest, ImagesThatAreDecodedComeBefore) {
  state_.mates = state_.decoding = 4;
  EXPECT_NEAR(Start(), 14, 1e-3);
}

TEST_F(AdmissionTest, OthersJoinTheBatch) {
  state_.others = 2;
  EXPECT_NEAR(Finish(), 14, 1e-3);
  state_.others = 0;
  state_.busy_until = {kNow + Ms(10)};
  state_.gap = Ms(4);
  EXPECT_NEAR(Finish(), 10 + 14, 1e-3);
}

TEST_F(AdmissionTest, WorkOfOtherKeysComesBefore) {
  state_.work.earlier = Ms(100);
  state_.drain.earlier = Ms(300);
  EXPECT_NEAR(Start(), 100, 1e-3);
  EXPECT_NEAR(Drained(), 311, 1e-3);
}

TEST_F(AdmissionTest, OtherClassesDelayByTheirSharesAtMost) {
  request_.priority = server::Priority::kNormal;
  state_.work.earlier = Ms(30);
  state_.work.higher = Ms(1000);
  state_.work.lower = Ms(1000);
  EXPECT_NEAR(Start(), 30 + 80 + 10, 1e-3);
  state_.work.higher = Ms(5);
  EXPECT_NEAR(Start(), 30 + 5 + 10, 1e-3);
  request_.priority = server::Priority::kHigh;
  state_.work.higher = Ms(0);
  EXPECT_NEAR(Start(), 30 + 15, 1e-3);
}

TEST_F(AdmissionTest, SlotsShareTheWork) {
  state_.slots = 3;
  state_.busy_until = {kNow + Ms(10), kNow + Ms(40)};
  state_.work.earlier = Ms(30);
  // The idle slot does the first 10 ms of the 30 ms alone. Then two slots do 10
  // ms each.
  EXPECT_NEAR(Start(), 20, 1e-3);
  // One slot does 10 ms alone, two slots do 30 ms each until 40 ms have passed,
  // and then three slots do 30 ms each.
  state_.work.earlier = Ms(160);
  EXPECT_NEAR(Start(), 70, 1e-3);
}

// If the queue has only one request, all slots run batches of this request.
// `drained` includes the client's earlier images, but `drained_alone` does not.
// If there are earlier images, `drained` is therefore later.
TEST_F(AdmissionTest, SlotsShareTheWorkOfARequestAlone) {
  state_.slots = 2;
  request_.images = 8;
  EXPECT_EQ(Estimate().work, Ms(14)) << "a batch of four in each";
  EXPECT_EQ(Estimate().drained_alone, Estimate().drained);
  state_.drain.earlier = Ms(1);
  EXPECT_GT(Estimate().drained, Estimate().drained_alone);
}

TEST_F(AdmissionTest, InTimeMeansBeforeTheDeadline) {
  request_.deadline = kNow + Ms(12);
  EXPECT_TRUE(Estimate().IsInTime(request_));
  request_.deadline = kNow + Ms(11);
  EXPECT_FALSE(Estimate().IsInTime(request_));
  request_.deadline = absl::InfiniteFuture();
  EXPECT_TRUE(Estimate().IsInTime(request_));
}

TEST_F(AdmissionTest, NeverFallsWithTheLoad) {
  double last = 0;
  for (int load = 0; load < 60; ++load) {
    state_.mates = load;
    state_.work.earlier = Ms(3 * (load / 2));
    ASSERT_GE(Finish(), last) << load;
    last = Finish();
  }
}

}  // namespace
}  // namespace sfmamba::batching
