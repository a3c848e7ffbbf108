#include "model/graph_plan.h"

#include "gtest/gtest.h"

namespace sfmamba {
namespace {

using Step = GraphPlan::Step;

constexpr GraphPlan::Key kKey = {8, 224, 224};

TEST(GraphBucketTest, IsTheNumberItselfUpTo8) {
  for (int images = 1; images <= 8; ++images) {
    EXPECT_EQ(GraphBucket(images), images);
  }
}

TEST(GraphBucketTest, HasFourStepsToAPowerOfTwo) {
  EXPECT_EQ(GraphBucket(9), 10);
  EXPECT_EQ(GraphBucket(16), 16);
  EXPECT_EQ(GraphBucket(17), 20);
  EXPECT_EQ(GraphBucket(33), 40);
  EXPECT_EQ(GraphBucket(128), 128);
  EXPECT_EQ(GraphBucket(129), 160);
}

TEST(GraphBucketTest, PadsLittleAndHoldsTheBatch) {
  for (int images = 1; images <= 1024; ++images) {
    const int bucket = GraphBucket(images);
    EXPECT_GE(bucket, images);
    EXPECT_LE(bucket - images, bucket / 5);
    EXPECT_EQ(GraphBucket(bucket), bucket);
  }
}

TEST(GraphPlanTest, CapturesThenReplays) {
  GraphPlan plan(4);
  EXPECT_EQ(plan.Next(kKey), Step::kCapture);
  plan.DidCapture(kKey);
  EXPECT_EQ(plan.Next(kKey), Step::kReplay);
  EXPECT_EQ(plan.Next({8, 224, 192}), Step::kCapture);
  EXPECT_EQ(plan.Next({7, 224, 224}), Step::kCapture);
}

TEST(GraphPlanTest, ABatchThatFailsIsCapturedTheNextTime) {
  GraphPlan plan(4);
  EXPECT_EQ(plan.Next(kKey), Step::kCapture);  // Threw: nothing is told.
  EXPECT_EQ(plan.Next(kKey), Step::kCapture);
}

TEST(GraphPlanTest, ACaptureThatFailsIsNotTriedAgain) {
  GraphPlan plan(4);
  plan.FailedToCapture(kKey);
  EXPECT_EQ(plan.Next(kKey), Step::kRun);
  plan.Reset();
  EXPECT_EQ(plan.Next(kKey), Step::kRun);
}

TEST(GraphPlanTest, CapturesSoManyKindsOnly) {
  GraphPlan plan(2);
  plan.DidCapture({1, 224, 224});
  plan.DidCapture({2, 224, 224});
  EXPECT_EQ(plan.Next({2, 224, 224}), Step::kReplay);
  EXPECT_EQ(plan.Next({3, 224, 224}), Step::kRun);
}

TEST(GraphPlanTest, AfterAResetGraphsAreCapturedAnew) {
  GraphPlan plan(1);
  plan.DidCapture(kKey);
  plan.Reset();
  EXPECT_EQ(plan.Next(kKey), Step::kCapture);
}

}  // namespace
}  // namespace sfmamba
