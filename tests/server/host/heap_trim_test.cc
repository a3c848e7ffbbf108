#include "server/host/heap_trim.h"

#include "gtest/gtest.h"

namespace sfmamba::server {
namespace {

class HeapTrimTest : public testing::Test {
 protected:
  MemoryHold Take(int64_t bytes) {
    return *memory_.Take(MemoryUse::kDecode, bytes);
  }

  MemoryBudget memory_{int64_t{1} << 30, 384 << 20};
  int trims_ = 0;
  HeapTrim trim_{&memory_, [this] { ++trims_; }};
};

// What is freed a little later is given back too.
TEST_F(HeapTrimTest, TrimsSomeTimesAfterAPeak) {
  { const MemoryHold peak = Take(HeapTrim::kPeak); }
  for (int i = 1; i <= HeapTrim::kTrims; ++i) {
    trim_.Look();
    EXPECT_EQ(trims_, i);
  }
  trim_.Look();
  EXPECT_EQ(trims_, HeapTrim::kTrims);
}

TEST_F(HeapTrimTest, APeakBeginsTheCountAnew) {
  { const MemoryHold peak = Take(HeapTrim::kPeak); }
  trim_.Look();
  { const MemoryHold peak = Take(HeapTrim::kPeak); }
  for (int i = 0; i <= HeapTrim::kTrims; ++i) trim_.Look();
  EXPECT_EQ(trims_, 1 + HeapTrim::kTrims);
}

TEST_F(HeapTrimTest, WaitsForThePeakToBeOver) {
  MemoryHold peak = Take(HeapTrim::kPeak);
  trim_.Look();
  ASSERT_TRUE(peak.Resize(HeapTrim::kPeak / 4 + 1).ok());
  trim_.Look();
  EXPECT_EQ(trims_, 0);
  ASSERT_TRUE(peak.Resize(HeapTrim::kPeak / 4).ok());
  trim_.Look();
  EXPECT_EQ(trims_, 1);
}

TEST_F(HeapTrimTest, LittleIsNoPeak) {
  { const MemoryHold little = Take(HeapTrim::kPeak - 1); }
  trim_.Look();
  EXPECT_EQ(trims_, 0);
}

TEST_F(HeapTrimTest, WhatIsReceivedIsAPeakToo) {
  trim_.Look({/*now=*/HeapTrim::kPeak / 4 + 1, /*most=*/HeapTrim::kPeak});
  EXPECT_EQ(trims_, 0);
  trim_.Look({/*now=*/0, /*most=*/0});
  EXPECT_EQ(trims_, 1);
}

TEST_F(HeapTrimTest, PeaksAreOfAllUsesTogether) {
  {
    const MemoryHold decode = Take(HeapTrim::kPeak / 2);
    const MemoryHold input =
        *memory_.Take(MemoryUse::kInput, HeapTrim::kPeak / 2);
  }
  trim_.Look();
  EXPECT_EQ(trims_, 1);
}

}  // namespace
}  // namespace sfmamba::server
