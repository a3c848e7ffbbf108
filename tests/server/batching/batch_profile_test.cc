#include "server/batching/batch_profile.h"

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace sfmamba::batching {
namespace {

const BatchProfile::Size kSize = {224, 224};
const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);

absl::Duration Ms(double milliseconds) {
  return absl::Milliseconds(milliseconds);
}

TEST(BatchProfileTest, KnowsNothingOfASizeThatNeverRan) {
  BatchProfile profile;
  profile.Record({32, 32}, 1, Ms(10), kStart);
  EXPECT_EQ(profile.Expected(kSize, 1, kStart), absl::ZeroDuration());
}

TEST(BatchProfileTest, IsAboveTheMeanByWhatBatchesDiffer) {
  BatchProfile steady, uneven;
  for (int i = 0; i < 50; ++i) {
    steady.Record(kSize, 8, Ms(100), kStart);
    uneven.Record(kSize, 8, Ms(i % 2 == 0 ? 80 : 120), kStart);
  }
  EXPECT_NEAR(absl::ToDoubleMilliseconds(steady.Expected(kSize, 8, kStart)),
              100, 0.1);
  const double expected =
      absl::ToDoubleMilliseconds(uneven.Expected(kSize, 8, kStart));
  EXPECT_GT(expected, 120);
  EXPECT_LT(expected, 170);
}

TEST(BatchProfileTest, OneLongBatchSaysLittle) {
  BatchProfile profile;
  for (int i = 0; i < 50; ++i) profile.Record(kSize, 8, Ms(100), kStart);
  profile.Record(kSize, 8, absl::Minutes(1), kStart);
  EXPECT_LT(profile.Expected(kSize, 8, kStart), Ms(200));
}

TEST(BatchProfileTest, LearnsThatBatchesTakeLonger) {
  BatchProfile profile;
  for (int i = 0; i < 50; ++i) profile.Record(kSize, 8, Ms(10), kStart);
  for (int i = 0; i < 50; ++i) profile.Record(kSize, 8, Ms(400), kStart);
  EXPECT_NEAR(absl::ToDoubleMilliseconds(profile.Expected(kSize, 8, kStart)),
              400, 40);
}

TEST(BatchProfileTest, OtherNumbersOfImagesAreUnderestimated) {
  BatchProfile profile;
  for (int i = 0; i < 50; ++i) {
    profile.Record(kSize, 2, Ms(30), kStart);
    profile.Record(kSize, 8, Ms(80), kStart);
  }
  const auto expected = [&](int images) {
    return absl::ToDoubleMilliseconds(profile.Expected(kSize, images, kStart));
  };
  EXPECT_NEAR(expected(1), 15, 0.1);  // Half of two images'.
  EXPECT_NEAR(expected(4), 40, 0.1);  // Half of eight images'.
  EXPECT_NEAR(expected(16), 80, 0.1);
}

TEST(BatchProfileTest, ForgetsWhatDidNotRunLately) {
  BatchProfile profile;
  profile.Record(kSize, 1, Ms(10), kStart);
  EXPECT_GT(profile.Expected(kSize, 1, kStart + Ms(900)), Ms(0));
  EXPECT_EQ(profile.Expected(kSize, 1, kStart + Ms(1100)), Ms(0));
  // Slow batches are remembered for as long as a few of them take.
  profile.Record(kSize, 1, absl::Seconds(5), kStart + absl::Minutes(1));
  const absl::Time later = kStart + absl::Minutes(1) + absl::Seconds(14);
  EXPECT_GT(profile.Expected(kSize, 1, later), Ms(0));
  EXPECT_EQ(profile.Expected(kSize, 1, later + absl::Seconds(2)), Ms(0));
}

}  // namespace
}  // namespace sfmamba::batching
