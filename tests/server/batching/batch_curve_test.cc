#include "server/batching/batch_curve.h"

#include <random>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace sfmamba::batching {
namespace {

using Sizes = std::vector<int>;

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);

absl::Duration Ms(double milliseconds) {
  return absl::Milliseconds(milliseconds);
}

double ToMs(absl::Duration duration) {
  return absl::ToDoubleMilliseconds(duration);
}

void RunOften(BatchCurve* curve, int images, double milliseconds,
              absl::Time now = kStart) {
  for (int i = 0; i < 50; ++i) curve->Record(images, Ms(milliseconds), now);
}

TEST(BatchCurveTest, KnowsNothingAtFirst) {
  const BatchCurve curve(4);
  EXPECT_FALSE(curve.is_known());
  EXPECT_FALSE(curve.IsFresh(kStart));
  EXPECT_EQ(curve.Median(4), absl::ZeroDuration());
  EXPECT_EQ(curve.efficient_sizes(), Sizes({1, 2, 3, 4}));
}

TEST(BatchCurveTest, P95IsAboveTheMedianByWhatBatchesDiffer) {
  BatchCurve steady(8), uneven(8);
  for (int i = 0; i < 100; ++i) {
    steady.Record(8, Ms(100), kStart);
    uneven.Record(8, Ms(i % 2 == 0 ? 80 : 120), kStart);
  }
  EXPECT_NEAR(ToMs(steady.P95(8)), 100, 0.1);
  EXPECT_NEAR(ToMs(uneven.Median(8)), 100, 5);
  EXPECT_GT(ToMs(uneven.P95(8)), 120);
  EXPECT_LT(ToMs(uneven.P95(8)), 170);
}

TEST(BatchCurveTest, P95IsExceededByAFewBatches) {
  BatchCurve curve(1);
  std::mt19937 random(1);
  std::lognormal_distribution<double> noise(0, 0.15);
  int longer = 0;
  for (int i = 0; i < 10'000; ++i) {
    const absl::Duration took = Ms(10 * noise(random));
    if (i > 0 && took > curve.P95(1)) ++longer;
    curve.Record(1, took, kStart);
  }
  EXPECT_GT(longer, 200);
  EXPECT_LT(longer, 1000);
}

TEST(BatchCurveTest, OneLongBatchSaysLittle) {
  BatchCurve curve(8);
  RunOften(&curve, 8, 100);
  curve.Record(8, absl::Minutes(1), kStart);
  EXPECT_LT(ToMs(curve.P95(8)), 200);
}

TEST(BatchCurveTest, LearnsThatBatchesTakeLonger) {
  BatchCurve curve(8);
  RunOften(&curve, 8, 10);
  RunOften(&curve, 8, 400);
  EXPECT_NEAR(ToMs(curve.Median(8)), 400, 20);
  EXPECT_GT(curve.pace(), 2);
}

TEST(BatchCurveTest, IsInterpolatedAndElsewhereAnUnderestimate) {
  BatchCurve curve(16);
  RunOften(&curve, 2, 30);
  RunOften(&curve, 8, 90);
  EXPECT_NEAR(ToMs(curve.Median(1)), 15, 0.1);  // Half the time of two images.
  EXPECT_NEAR(ToMs(curve.Median(4)), 50,
              0.1);  // A third of the way from 2 to 8.
  EXPECT_NEAR(ToMs(curve.Median(16)), 90, 0.1);
}

TEST(BatchCurveTest, NeverFallsWithTheImages) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> took(1, 100);
  for (int trace = 0; trace < 50; ++trace) {
    BatchCurve curve(32);
    for (int i = 0; i < 40; ++i) {
      curve.Record(1 + random() % 32, Ms(took(random)), kStart);
    }
    for (int n = 2; n <= 32; ++n) {
      ASSERT_LE(curve.Median(n - 1), curve.Median(n)) << n;
      ASSERT_LE(curve.P95(n - 1), curve.P95(n)) << n;
      ASSERT_LE(curve.Median(n), curve.P95(n)) << n;
    }
  }
}

TEST(BatchCurveTest, SizesThatSeemToTakeLongerThanLargerOnesGetTheirMean) {
  BatchCurve curve(16);
  RunOften(&curve, 2, 10);
  RunOften(&curve, 4, 31);
  for (int i = 0; i < 5; ++i) curve.Record(8, Ms(21), kStart);
  RunOften(&curve, 16, 40);
  for (const int n : {4, 8}) {
    EXPECT_NEAR(ToMs(curve.Median(n)), 29, 0.1) << "20 weigh as five";
  }
  EXPECT_NEAR(ToMs(curve.Median(2)), 10, 0.1);
  EXPECT_NEAR(ToMs(curve.Median(16)), 40, 0.1);
}

TEST(BatchCurveTest, SizesJustAboveAStepAreNotEfficient) {
  BatchCurve curve(9);
  for (int n = 1; n <= 9; ++n) RunOften(&curve, n, n <= 4 ? 10 : 20);
  EXPECT_EQ(curve.efficient_sizes(), Sizes({1, 2, 3, 4, 9}));
  EXPECT_EQ(curve.best_size(), 9);
  EXPECT_NEAR(ToMs(curve.Work(21)), 20 + 20 + 10, 0.1);
}

TEST(BatchCurveTest, WhereBatchesSaveNothingOnlyOneImageIsEfficient) {
  BatchCurve curve(4);
  for (int n = 1; n <= 4; ++n) RunOften(&curve, n, 300 * n);
  EXPECT_EQ(curve.efficient_sizes(), Sizes({1}));
  EXPECT_NEAR(ToMs(curve.Work(4)), 1200, 1);
}

TEST(BatchCurveTest, IsFreshForASecondOrAFewBatches) {
  BatchCurve fast(1), slow(1);
  fast.Record(1, Ms(10), kStart);
  slow.Record(1, absl::Seconds(5), kStart);
  EXPECT_TRUE(fast.IsFresh(kStart + Ms(1000)));
  EXPECT_FALSE(fast.IsFresh(kStart + Ms(1001)));
  EXPECT_TRUE(slow.IsFresh(kStart + absl::Seconds(15)));
  EXPECT_FALSE(slow.IsFresh(kStart + absl::Seconds(15.001)));
}

// The freshness depends on the duration of the size that ran last. The longer
// duration of another size does not count.
TEST(BatchCurveTest, IsFreshForAFewBatchesOfTheLastSize) {
  BatchCurve curve(32);
  curve.Set(32, {absl::Seconds(5), absl::Seconds(6)}, kStart);
  EXPECT_TRUE(curve.IsFresh(kStart + absl::Seconds(14)));
  const absl::Time later = kStart + absl::Minutes(1);
  curve.Record(1, Ms(100), later);
  EXPECT_TRUE(curve.IsFresh(later + Ms(900)));
  EXPECT_FALSE(curve.IsFresh(later + Ms(1100)));
}

TEST(BatchCurveTest, SizesThatDoNotRunAreCorrectedByThoseThatDo) {
  BatchCurve curve(8);
  curve.Set(1, {Ms(10), Ms(12)}, kStart);
  curve.Set(8, {Ms(40), Ms(48)}, kStart);
  // The device's speed is halved.
  for (int i = 0; i < 300; ++i) {
    curve.Record(8, Ms(80), kStart + absl::Seconds(2));
  }
  EXPECT_NEAR(ToMs(curve.Median(8)), 80, 1);
  EXPECT_NEAR(ToMs(curve.Median(1)), 20, 1);
  EXPECT_NEAR(ToMs(curve.P95(1)), 24, 1);
}

TEST(BatchCurveTest, NoiseDoesNotMoveSizesThatDoNotRun) {
  BatchCurve curve(8);
  curve.Set(1, {Ms(10), Ms(12)}, kStart);
  curve.Set(8, {Ms(40), Ms(48)}, kStart);
  std::mt19937 random(5);
  std::lognormal_distribution<double> noise(0, 0.15);
  for (int i = 0; i < 20'000; ++i) {
    curve.Record(8, Ms(40 * noise(random)), kStart + absl::Seconds(2));
  }
  EXPECT_NEAR(ToMs(curve.Median(1)), 10, 1.5);
}

TEST(BatchCurveTest, AStrayBatchOfARareSizeIsForgotten) {
  BatchCurve curve(8);
  for (int i = 0; i < 50; ++i) curve.Record(8, Ms(40), kStart);
  curve.Record(4, Ms(120), kStart);
  curve.Record(8, Ms(40), kStart + absl::Seconds(2));
  EXPECT_EQ(curve.Points().count(4), 0);
  EXPECT_NEAR(ToMs(curve.Median(4)), 20, 0.1);
  // If at least three batches of a size have run, its estimate is not
  // forgotten.
  for (int i = 0; i < 3; ++i) {
    curve.Record(4, Ms(30), kStart + absl::Seconds(2));
  }
  curve.Record(8, Ms(40), kStart + absl::Seconds(4));
  EXPECT_NEAR(ToMs(curve.Median(4)), 30, 0.1);
}

TEST(BatchCurveTest, LargerBatchesAreOldAfterAWhileWithoutThem) {
  BatchCurve curve(8);
  RunOften(&curve, 1, 10);
  RunOften(&curve, 4, 40);
  const absl::Time later = kStart + absl::Seconds(11);
  EXPECT_FALSE(curve.LargerAreOld(1, kStart + absl::Seconds(5)));
  EXPECT_TRUE(curve.LargerAreOld(1, later));
  RunOften(&curve, 2, 20, later);
  EXPECT_FALSE(curve.LargerAreOld(1, later + absl::Seconds(4)));
  EXPECT_TRUE(curve.LargerAreOld(2, later));
}

TEST(BatchCurveTest, WhatWasMeasuredLongAgoGivesWayToWhatRuns) {
  BatchCurve measured(8), used(8), idle(8);
  const absl::Time later = kStart + absl::Seconds(11);
  for (BatchCurve* curve : {&measured, &used, &idle}) {
    for (int n : {1, 4, 7, 8}) curve->Set(n, {Ms(10 * n), Ms(10 * n)}, kStart);
    if (curve == &used) RunOften(curve, 8, 80);
    if (curve != &idle) RunOften(curve, 1, 10, later);
  }
  const double pace = measured.pace();
  measured.Record(8, Ms(50), later);
  EXPECT_NEAR(ToMs(measured.Median(8)), 50, 0.1) << "7 is forgotten";
  EXPECT_NEAR(ToMs(measured.Median(4)), 40, 0.1);
  EXPECT_NEAR(measured.pace(), pace, 1e-9) << "it was wrong, nothing changed";
  used.Record(8, Ms(50), later);
  EXPECT_NEAR(ToMs(used.Median(8)), 50, 0.1);
  // In `idle`, no other size ran during the pause. A single batch then changes
  // the estimate less than in `measured` and `used`.
  idle.Record(8, Ms(50), later);
  EXPECT_GT(ToMs(idle.Median(8)), 75);
}

// Records batches of 8 images that take 40 ms and, 11 s later, batches of one
// image. Returns the time of the later batches.
absl::Time RunSingles(BatchCurve* curve) {
  RunOften(curve, 8, 40);
  const absl::Time later = kStart + absl::Seconds(11);
  RunOften(curve, 1, 9, later);
  return later;
}

TEST(BatchCurveTest, TheFirstLongBatchAfterOthersRanMayBeAnAccident) {
  BatchCurve curve(8);
  const absl::Time later = RunSingles(&curve);
  curve.Record(8, Ms(110), later);
  EXPECT_NEAR(ToMs(curve.Median(8)), 40, 0.1);
  curve.Record(8, Ms(110), later);
  EXPECT_NEAR(ToMs(curve.Median(8)), 75, 1) << "the second is none";
}

TEST(BatchCurveTest, ASizeThatBeginsAnewSaysNothingOfThePace) {
  BatchCurve curve(8);
  absl::Time now = RunSingles(&curve);
  RunOften(&curve, 1, 18, now);  // The device's speed is halved.
  const double pace = curve.pace();
  EXPECT_NEAR(pace, 2, 0.2);
  for (int i = 0; i < 20; ++i) curve.Record(8, Ms(80), now += Ms(80));
  EXPECT_NEAR(curve.pace(), pace, 1e-9);
  EXPECT_NEAR(ToMs(curve.Median(1)), 18, 1) << "not a half again";
}

TEST(BatchCurveTest, WhatIsMeasuredAnewHasThePaceOfThen) {
  BatchCurve curve(8);
  RunOften(&curve, 1, 10);
  RunOften(&curve, 1, 20);  // The device's speed is halved.
  EXPECT_GT(curve.pace(), 1.5);
  curve.Set(8, {Ms(40), Ms(48)}, kStart);
  curve.Record(1, Ms(20), kStart + absl::Seconds(2));
  EXPECT_NEAR(ToMs(curve.Median(8)), 40, 2);
}

TEST(BatchCurveTest, LargerSizesThatNeverRanWereMeasuredAsWrongly) {
  BatchCurve curve(8);
  for (int n : {1, 2, 4, 8}) curve.Set(n, {Ms(20 * n), Ms(20 * n)}, kStart);
  RunOften(&curve, 8, 160);
  const absl::Time later = kStart + absl::Seconds(11);
  RunOften(&curve, 1, 20, later);
  curve.Record(2, Ms(20), later);  // Half of the measured time.
  EXPECT_NEAR(ToMs(curve.Median(2)), 20, 0.1);
  EXPECT_NEAR(ToMs(curve.Median(4)), 40, 0.1);
  EXPECT_NEAR(ToMs(curve.Median(8)), 160, 1) << "this has run";
  BatchCurve uneven(8);
  for (int n : {1, 2, 4}) uneven.Set(n, {Ms(20 * n), Ms(30 * n)}, kStart);
  RunOften(&uneven, 1, 20, later);
  uneven.Record(2, Ms(20), later);
  EXPECT_NEAR(ToMs(uneven.P95(4)), 60, 0.1);
  // The batch of 2 images takes 70 ms, which is longer than the 40 ms from
  // Set(). A longer batch does not change the estimates of other sizes.
  BatchCurve slower(8);
  for (int n : {1, 2, 4}) slower.Set(n, {Ms(20 * n), Ms(20 * n)}, kStart);
  RunOften(&slower, 1, 20, later);
  slower.Record(2, Ms(70), later);
  EXPECT_NEAR(ToMs(slower.Median(4)), 80, 0.1);
  // The sizes 8 and 4 are measured again. Then a batch of 4 images takes only
  // half of the measured time. The size 8 has not run after its measurement, so
  // its estimate is halved, too.
  curve.Set(8, {Ms(160), Ms(160)}, later);
  curve.Set(4, {Ms(80), Ms(80)}, later);
  const absl::Time latest = later + absl::Seconds(11);
  RunOften(&curve, 1, 20, latest);
  curve.Record(4, Ms(40), latest);
  EXPECT_NEAR(ToMs(curve.Median(8)), 80, 1);
}

}  // namespace
}  // namespace sfmamba::batching
