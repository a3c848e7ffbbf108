#include "model/tuning/scan_plan_chooser.h"

#include "gtest/gtest.h"

namespace sfmamba::tuning {
namespace {

ScanDevice SomeGpu() { return {"some GPU", 132, "some build"}; }

ScanShape SomeShape(int sequences) {
  ScanShape shape;
  shape.channels = 160;
  shape.states = 8;
  shape.sequences = sequences;
  shape.length = 198;
  return shape;
}

ScanPlanTable TableOf(const ScanDevice& device, const kernels::ScanPlan& plan) {
  ScanPlanTable table(device);
  table.Set({SomeShape(128), plan, /*microseconds=*/1});
  return table;
}

kernels::ScanPlan QuarterOfTheRows() {
  kernels::ScanPlan plan;
  plan.rows = 32;
  return plan;
}

TEST(ScanPlanChooserTest, TakesTheTablesPlan) {
  const ScanPlanChooser chooser(SomeGpu(),
                                TableOf(SomeGpu(), QuarterOfTheRows()),
                                /*deterministic=*/false);
  EXPECT_EQ(chooser.Rows(SomeShape(128), 128), 32);
  EXPECT_EQ(chooser.Rows(SomeShape(64), 64), 16);
}

TEST(ScanPlanChooserTest, PassesAnotherDevicesTableOver) {
  const ScanPlanChooser chooser({"another GPU", 84, "some build"},
                                TableOf(SomeGpu(), QuarterOfTheRows()),
                                /*deterministic=*/false);
  EXPECT_EQ(chooser.Rows(SomeShape(128), 128), 128);
}

TEST(ScanPlanChooserTest, FoldsAsItIsAsked) {
  const ScanPlanChooser chooser(SomeGpu(), std::nullopt,
                                /*deterministic=*/false);
  const kernels::ScanPlan plan = chooser.Plan(SomeShape(128), 16);
  EXPECT_EQ(plan.kernel, kernels::ScanPlan::kFold);
  EXPECT_EQ(plan.rows, 16);
}

TEST(ScanPlanChooserTest, ADeterministicPlanDoesNotDependOnTheBatch) {
  const ScanPlanChooser chooser(SomeGpu(),
                                TableOf(SomeGpu(), QuarterOfTheRows()),
                                /*deterministic=*/true);
  for (const int sequences : {1, 2, 128, 512}) {
    const kernels::ScanPlan plan =
        chooser.Plan(SomeShape(sequences), sequences);
    const kernels::ScanPlan one = chooser.Plan(SomeShape(1), 1);
    EXPECT_EQ(plan.kernel, kernels::ScanPlan::kLane);
    EXPECT_EQ(plan.lanes, one.lanes);
    EXPECT_EQ(plan.channels_per_thread, one.channels_per_thread);
  }
  EXPECT_EQ(chooser.Plan(SomeShape(128), 16).kernel, kernels::ScanPlan::kLane);
}

}  // namespace
}  // namespace sfmamba::tuning
