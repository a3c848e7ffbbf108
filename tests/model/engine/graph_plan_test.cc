#include "model/engine/graph_plan.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sfmamba::engine {
namespace {

using Step = GraphPlan::Step;

using testing::ElementsAre;

constexpr GraphPlan::Key kKey = {8, 224, 224};
const absl::Time kStart = absl::FromUnixSeconds(1000000);

TEST(PaddedBatchSizeTest, IsTheNumberItselfUpTo8) {
  for (int images = 1; images <= 8; ++images) {
    EXPECT_EQ(PaddedBatchSize(images), images);
  }
}

TEST(PaddedBatchSizeTest, HasFourStepsToAPowerOfTwo) {
  EXPECT_EQ(PaddedBatchSize(9), 10);
  EXPECT_EQ(PaddedBatchSize(16), 16);
  EXPECT_EQ(PaddedBatchSize(17), 20);
  EXPECT_EQ(PaddedBatchSize(33), 40);
  EXPECT_EQ(PaddedBatchSize(128), 128);
  EXPECT_EQ(PaddedBatchSize(129), 160);
}

TEST(PaddedBatchSizeTest, PadsLittleAndHoldsTheBatch) {
  for (int images = 1; images <= 1024; ++images) {
    const int bucket = PaddedBatchSize(images);
    EXPECT_GE(bucket, images);
    EXPECT_LE(bucket - images, bucket / 5);
    EXPECT_EQ(PaddedBatchSize(bucket), bucket);
  }
}

TEST(PaddedBatchSizesTest, AreAllThatBatchesArePaddedTo) {
  EXPECT_THAT(PaddedBatchSizes(1), ElementsAre(1));
  EXPECT_THAT(PaddedBatchSizes(3), ElementsAre(3, 2, 1));
  EXPECT_THAT(PaddedBatchSizes(17),
              ElementsAre(20, 16, 14, 12, 10, 8, 7, 6, 5, 4, 3, 2, 1));
}

TEST(GraphPlanTest, CapturesThenReplays) {
  GraphPlan plan(4);
  EXPECT_EQ(plan.Next(kKey, kStart), Step::kCapture);
  plan.DidCapture(kKey);
  EXPECT_EQ(plan.Next(kKey, kStart), Step::kReplay);
  EXPECT_EQ(plan.Next({8, 224, 192}, kStart), Step::kCapture);
  EXPECT_EQ(plan.Next({7, 224, 224}, kStart), Step::kCapture);
}

TEST(GraphPlanTest, ABatchThatFailsIsCapturedTheNextTime) {
  GraphPlan plan(4);
  EXPECT_EQ(plan.Next(kKey, kStart),
            Step::kCapture);  // The caller reported no outcome.
  EXPECT_EQ(plan.Next(kKey, kStart), Step::kCapture);
}

TEST(GraphPlanTest, ACaptureThatFailsIsTriedAgainAfterAWhile) {
  GraphPlan plan(4);
  absl::Time now = kStart;
  absl::Duration pause = GraphPlan::kFirstRetry;
  for (int failures = 0; failures < 10; ++failures) {
    plan.FailedToCapture(kKey, now);
    EXPECT_EQ(plan.Next(kKey, now + pause - absl::Nanoseconds(1)), Step::kRun);
    EXPECT_EQ(plan.Next(kKey, now + pause), Step::kCapture);
    now += pause;
    pause = std::min(2 * pause, GraphPlan::kLastRetry);
  }
  EXPECT_EQ(pause, GraphPlan::kLastRetry);
  plan.DidCapture(kKey);
  EXPECT_EQ(plan.Next(kKey, now), Step::kReplay);
}

TEST(GraphPlanTest, AResetLeavesFailuresTheirPause) {
  GraphPlan plan(4);
  plan.FailedToCapture(kKey, kStart);
  plan.Reset();
  EXPECT_EQ(plan.Next(kKey, kStart), Step::kRun);
}

TEST(GraphPlanTest, CapturesSoManyKindsOnly) {
  GraphPlan plan(2);
  plan.DidCapture({1, 224, 224});
  plan.DidCapture({2, 224, 224});
  EXPECT_EQ(plan.Next({2, 224, 224}, kStart), Step::kReplay);
  EXPECT_EQ(plan.Next({3, 224, 224}, kStart), Step::kRun);
}

TEST(GraphPlanTest, AfterAResetGraphsAreCapturedAnew) {
  GraphPlan plan(1);
  plan.DidCapture(kKey);
  plan.Reset();
  EXPECT_EQ(plan.Next(kKey, kStart), Step::kCapture);
}

}  // namespace
}  // namespace sfmamba::engine
