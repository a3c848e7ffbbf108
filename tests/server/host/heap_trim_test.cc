#include "server/host/heap_trim.h"

#include "gtest/gtest.h"

namespace sfmamba::server {
namespace {

constexpr int64_t kPeak = 64 << 20;  // A peak has at least this many bytes.

class HeapTrimTest : public testing::Test {
 protected:
  MemoryHold Take(int64_t bytes) {
    return *memory_.Take(MemoryUse::kDecode, bytes);
  }

  MemoryBudget memory_{int64_t{1} << 30, 384 << 20};
  int trims_ = 0;
  HeapTrim trim_{&memory_, [this] { ++trims_; }};
};

// The second trim returns memory that is freed a little later.
TEST_F(HeapTrimTest, TrimsTwiceAfterAPeak) {
  { const MemoryHold peak = Take(kPeak); }
  for (int i : {1, 2}) {
    trim_.Look();
    EXPECT_EQ(trims_, i);
  }
  trim_.Look();
  EXPECT_EQ(trims_, 2);
}

TEST_F(HeapTrimTest, APeakBeginsTheCountAnew) {
  { const MemoryHold peak = Take(kPeak); }
  trim_.Look();
  { const MemoryHold peak = Take(kPeak); }
  for (int i = 0; i < 3; ++i) trim_.Look();
  EXPECT_EQ(trims_, 1 + 2);
}

TEST_F(HeapTrimTest, WaitsForThePeakToBeOver) {
  MemoryHold peak = Take(kPeak);
  trim_.Look();
  ASSERT_TRUE(peak.Resize(kPeak / 4 + 1).ok());
  trim_.Look();
  EXPECT_EQ(trims_, 0);
  ASSERT_TRUE(peak.Resize(kPeak / 4).ok());
  trim_.Look();
  EXPECT_EQ(trims_, 1);
}

TEST_F(HeapTrimTest, LittleIsNoPeak) {
  { const MemoryHold little = Take(kPeak - 1); }
  trim_.Look();
  EXPECT_EQ(trims_, 0);
}

TEST_F(HeapTrimTest, PeaksAreOfAllUsesTogether) {
  {
    const MemoryHold decode = Take(kPeak / 2);
    const MemoryHold input = *memory_.Take(MemoryUse::kInput, kPeak / 2);
  }
  trim_.Look();
  EXPECT_EQ(trims_, 1);
}

}  // namespace
}  // namespace sfmamba::server
