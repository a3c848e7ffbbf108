#include "kernels/base/packed_sequences.h"

#include <vector>

#include "gtest/gtest.h"

namespace sfmamba::kernels {
namespace {

TEST(SegmentsTest, EqualLengthsFollowEachOther) {
  const PackedSequences sequences{3, 198};
  EXPECT_EQ(sequences.begin(0), 0);
  EXPECT_EQ(sequences.end(0), 198);
  EXPECT_EQ(sequences.begin(2), 396);
  EXPECT_EQ(sequences.end(2), 594);
}

TEST(SegmentsTest, OffsetsGiveEachLength) {
  const std::vector<int32_t> offsets = {0, 5, 6, 57};
  const PackedSequences sequences{3, 0, offsets.data()};
  EXPECT_EQ(sequences.begin(1), 5);
  EXPECT_EQ(sequences.end(1), 6);
  EXPECT_EQ(sequences.end(2), 57);
}

TEST(SegmentsTest, PositionsExceed32Bits) {
  const PackedSequences sequences{1 << 20, 1 << 13};
  EXPECT_EQ(sequences.begin(1 << 20), int64_t{1} << 33);
}

TEST(SegmentsTest, SliceKeepsPositions) {
  const std::vector<int32_t> offsets = {0, 5, 6, 57};
  for (const PackedSequences& all :
       {PackedSequences{3, 7}, PackedSequences{3, 0, offsets.data()}}) {
    const PackedSequences slice = all.Slice(1, 3);
    EXPECT_EQ(slice.count, 2);
    EXPECT_EQ(slice.begin(0), all.begin(1));
    EXPECT_EQ(slice.end(1), all.end(2));
    EXPECT_EQ(slice.Slice(1, 2).begin(0), all.begin(2));
  }
}

}  // namespace
}  // namespace sfmamba::kernels
