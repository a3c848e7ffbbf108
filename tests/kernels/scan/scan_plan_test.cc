#include "kernels/scan/scan_plan.h"

#include <string>

#include "gtest/gtest.h"

namespace sfmamba::kernels {
namespace {

constexpr int kH200 = 132, kA100 = 108;  // The numbers of multiprocessors.

ScanPlan Default(int multiprocessors, int sequences, int length, int channels) {
  return DefaultScanPlan(multiprocessors, sequences, length, channels, 8);
}

TEST(DefaultScanPlanTest, ReadsTheTokensOfSmallBatchesConcurrently) {
  for (const int multiprocessors : {kA100, kH200}) {
    for (const int sequences : {1, 8}) {
      const ScanPlan plan = Default(multiprocessors, sequences, 198, 160);
      EXPECT_EQ(plan.kernel, ScanPlan::kFold) << sequences;
      EXPECT_EQ(plan.rows, 0) << sequences;
    }
  }
  EXPECT_EQ(Default(kH200, 16, 198, 160).kernel, ScanPlan::kLane);
}

TEST(DefaultScanPlanTest, SpreadsShortSequencesOverLanes) {
  EXPECT_EQ(Default(kH200, 1, 51, 320).kernel, ScanPlan::kLane);
  EXPECT_EQ(Default(kH200, 1, 51, 320).lanes, 4);
}

// These plans were measured as the fastest of all.
TEST(DefaultScanPlanTest, IsTheFastestOnAnH200) {
  const struct {
    int sequences, length, channels, lanes;
  } kFastest[] = {{16, 198, 160, 4},  {64, 198, 160, 4}, {128, 198, 160, 2},
                  {256, 198, 160, 1}, {64, 51, 320, 2},  {128, 51, 320, 1},
                  {64, 198, 256, 2},  {512, 198, 256, 1}};
  for (const auto& [sequences, length, channels, lanes] : kFastest) {
    const ScanPlan plan = Default(kH200, sequences, length, channels);
    EXPECT_EQ(plan.kernel, ScanPlan::kLane) << sequences << " x " << length;
    EXPECT_EQ(plan.lanes, lanes) << sequences << " x " << length;
    EXPECT_EQ(plan.channels_per_thread, 1) << sequences << " x " << length;
  }
}

TEST(DefaultScanPlanTest, SpendsFewInstructionsOnLargeBatches) {
  for (const int multiprocessors : {kA100, kH200}) {
    for (const int sequences : {512, 2048}) {
      const ScanPlan plan = Default(multiprocessors, sequences, 198, 160);
      EXPECT_EQ(plan.kernel, ScanPlan::kLane) << sequences;
      EXPECT_EQ(plan.lanes, 1) << sequences;
    }
  }
}

TEST(DefaultScanPlanTest, LanesNeverGrowWithTheBatch) {
  for (const int states : {8, 16}) {
    int lanes = 8;
    for (int sequences = 1; sequences <= 4096; sequences *= 4) {
      const ScanPlan plan = DefaultScanPlan(kH200, sequences, 198, 320, states);
      if (plan.kernel != ScanPlan::kLane) continue;
      EXPECT_LE(plan.lanes, lanes) << sequences;
      lanes = plan.lanes;
    }
  }
}

TEST(DefaultScanPlanTest, CutsFewLongSequences) {
  for (const int length : {3138, 12546, 50178}) {
    const ScanPlan plan = Default(kH200, 1, length, 160);
    EXPECT_EQ(plan.kernel, ScanPlan::kChunk) << length;
    EXPECT_GE(plan.chunks, 8) << length;
    EXPECT_GE(length / plan.chunks, 32) << length;
  }
  EXPECT_EQ(Default(kH200, 512, 3138, 160).kernel, ScanPlan::kLane);
}

TEST(DefaultScanPlanTest, OneStateHasAThreadPerChannel) {
  for (const int walks : {4, 32, 512}) {
    for (const int length : {49, 196, 3136, 67200}) {
      const ScanPlan plan =
          DefaultScanPlan(kH200, walks, length, /*channels=*/96, /*states=*/1);
      EXPECT_NE(plan.kernel, ScanPlan::kFold) << walks << " x " << length;
      EXPECT_EQ(plan.lanes, 1) << walks << " x " << length;
    }
  }
  EXPECT_EQ(DefaultScanPlan(kH200, 4, 67200, 96, 1).kernel, ScanPlan::kChunk);
  EXPECT_EQ(DefaultScanPlan(kH200, 4 * 512, 3136, 96, 1).kernel,
            ScanPlan::kLane);
}

TEST(DefaultScanPlanTest, IsAPlanForAnyShape) {
  for (const int multiprocessors : {1, 132}) {
    for (const int sequences : {1, 31, 1 << 20}) {
      for (const int length : {1, 51, 1 << 20}) {
        for (const int channels : {1, 66, 4096}) {
          const ScanPlan plan =
              DefaultScanPlan(multiprocessors, sequences, length, channels, 16);
          EXPECT_EQ(CheckScanPlan(plan), absl::OkStatus());
        }
      }
    }
  }
}

TEST(CheckScanPlanTest, NamesTheFieldWhatItIsAndWhatItMayBe) {
  ScanPlan plan;
  EXPECT_EQ(CheckScanPlan(plan), absl::OkStatus());
  plan.lanes = 3;
  EXPECT_EQ(CheckScanPlan(plan).message(),
            "scan plan: lanes: got 3, expected 1 or 2 or 4 or 8");
  plan.lanes = 2;
  plan.channels_per_thread = 2;
  EXPECT_EQ(CheckScanPlan(plan).message(),
            "scan plan: channels_per_thread, with several lanes: got 2, "
            "expected 1");
  plan.kernel = ScanPlan::kChunk;
  EXPECT_EQ(CheckScanPlan(plan).message(),
            "scan plan: chunks: got 0, expected 1 to 1024");
  plan.kernel = ScanPlan::kFold;
  plan.items = 5;
  EXPECT_EQ(CheckScanPlan(plan).message(),
            "scan plan: items: got 5, expected 0 or 2 or 4 or 7 or 8 or 13 or "
            "16");
  plan.items = 0;
  plan.rows = -1;
  EXPECT_EQ(CheckScanPlan(plan).code(), absl::StatusCode::kInvalidArgument);
}

TEST(ScanScratchBytesTest, HoldsTheEndOfEachPieceButTheLast) {
  ScanPlan plan;
  EXPECT_EQ(ScanScratchBytes(plan, 4, 160, 8), 0);
  plan.kernel = ScanPlan::kChunk;
  plan.chunks = 1;
  EXPECT_EQ(ScanScratchBytes(plan, 4, 160, 8), 0);
  plan.chunks = 3;
  EXPECT_EQ(ScanScratchBytes(plan, 4, 160, 8), 4 * 2 * 9 * 160 * 4);
}

TEST(FoldItemsTest, AreTheFewestThatSpanTheRow) {
  EXPECT_EQ(FoldItems(1), 2);
  EXPECT_EQ(FoldItems(51), 2);
  EXPECT_EQ(FoldItems(65), 4);
  EXPECT_EQ(FoldItems(198), 7);
  EXPECT_EQ(FoldItems(256), 8);
  EXPECT_EQ(FoldItems(257), 13);
  EXPECT_EQ(FoldItems(1 << 20), 16);
}

}  // namespace
}  // namespace sfmamba::kernels
