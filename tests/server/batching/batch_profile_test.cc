#include "server/batching/batch_profile.h"

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace sfmamba::batching {
namespace {

constexpr int kMaxImages = 8;
const BatchKey kKey = {224, 224};
const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);

absl::Duration Ms(double milliseconds) {
  return absl::Milliseconds(milliseconds);
}

TEST(BatchProfileTest, KnowsNothingOfAKeyThatNeverRan) {
  BatchProfile profile(kMaxImages);
  profile.Record({32, 32}, 1, Ms(10), kStart);
  EXPECT_TRUE(profile.Curve({32, 32}).is_known());
  EXPECT_FALSE(profile.Curve(kKey).is_known());
  EXPECT_EQ(profile.Curve(kKey).P95(1), absl::ZeroDuration());
}

TEST(BatchProfileTest, KeysDifferInType) {
  BatchProfile profile(kMaxImages);
  profile.Record(kKey, 1, Ms(10), kStart);
  EXPECT_FALSE(profile.Curve({224, 224, ImageType::kFloat32}).is_known());
}

TEST(BatchProfileTest, WhatIsExportedCanBeImported) {
  BatchProfile profile(kMaxImages);
  for (int i = 0; i < 30; ++i) {
    profile.Record(kKey, 1, Ms(i % 2 == 0 ? 9 : 11), kStart);
    profile.Record(kKey, 8, Ms(40), kStart);
    profile.Record({32, 64, ImageType::kFloat32}, 2, Ms(5), kStart);
  }
  BatchProfile other(kMaxImages);
  other.Import(profile.Export(), kStart);
  for (const BatchKey& key : {kKey, BatchKey{32, 64, ImageType::kFloat32}}) {
    for (int n = 1; n <= kMaxImages; ++n) {
      EXPECT_NEAR(absl::FDivDuration(other.Curve(key).Median(n),
                                     profile.Curve(key).Median(n)),
                  1, 1e-6);
      EXPECT_NEAR(absl::FDivDuration(other.Curve(key).P95(n),
                                     profile.Curve(key).P95(n)),
                  1, 1e-6);
    }
  }
}

TEST(BatchProfileTest, SizesAboveTheMaximumAreNotImported) {
  BatchProfile profile(kMaxImages);
  profile.Import({{kKey, kMaxImages + 1, Ms(1), Ms(2)}}, kStart);
  EXPECT_TRUE(profile.Export().empty());
}

// A dense model may have any number of image sizes. The oldest key is therefore
// removed if there are too many.
TEST(BatchProfileTest, TheKeyThatRanLongestAgoIsForgotten) {
  BatchProfile profile(kMaxImages);
  for (int i = 1; i <= 1025; ++i) {
    profile.Record({i, i}, 1, Ms(1), kStart + Ms(i));
  }
  EXPECT_FALSE(profile.Curve({1, 1}).is_known());
  EXPECT_TRUE(profile.Curve({2, 2}).is_known());
  EXPECT_TRUE(profile.Curve({1025, 1025}).is_known());
}

TEST(AddMultiplesTest, LargerBatchesTakeAsOftenAsLong) {
  const BatchKey key = {64, 64};
  std::vector<BatchTime> times = {
      {key, 1, absl::Milliseconds(5), absl::Milliseconds(6)},
      {key, 2, absl::Milliseconds(8), absl::Milliseconds(10)}};
  AddMultiples(7, &times);
  ASSERT_EQ(times.size(), 4);
  EXPECT_EQ(times[2].images, 4);
  EXPECT_EQ(times[2].median, absl::Milliseconds(16));
  EXPECT_EQ(times[3].images, 7);
  EXPECT_EQ(times[3].p95, absl::Milliseconds(35));
  EXPECT_EQ(times[3].key, key);
  AddMultiples(7, &times);
  EXPECT_EQ(times.size(), 4) << "the largest is there";
  times.clear();
  AddMultiples(7, &times);
  EXPECT_TRUE(times.empty());
}

}  // namespace
}  // namespace sfmamba::batching
