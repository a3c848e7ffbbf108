#include "server/batching/schedule.h"

#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace sfmamba::batching {
namespace {

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);

absl::Duration Ms(double milliseconds) {
  return absl::Milliseconds(milliseconds);
}

absl::Time At(double milliseconds) { return kStart + Ms(milliseconds); }

// Returns a curve for which a batch of n images takes fixed + n * per_image
// milliseconds.
BatchCurve Linear(double fixed, double per_image, int max_images = 8) {
  BatchCurve curve(max_images);
  for (int n = 1; n <= max_images; ++n) {
    curve.Set(n, {Ms(fixed + n * per_image), Ms(fixed + n * per_image)},
              kStart);
  }
  return curve;
}

WaitingLine Line(const BatchCurve& curve, int tasks, double deadline = 1000) {
  WaitingLine line;
  line.curve = &curve;
  line.tasks = tasks;
  line.oldest = kStart;
  line.start_by = line.finish_by = At(deadline);
  return line;
}

ScheduleOptions Options(BatchMode mode, double delay = 5) {
  return {8, Ms(delay), mode};
}

const ScheduleOptions kLatency = Options(BatchMode::kLatency);
const ScheduleOptions kThroughput = Options(BatchMode::kThroughput);

TEST(DecideTest, NothingLeavesWhereNothingWaits) {
  const Decision decision = Decide(kLatency, {}, kStart);
  EXPECT_EQ(decision.line, -1);
  EXPECT_EQ(decision.wake, absl::InfiniteFuture());
}

TEST(DecideTest, OneTaskLeavesAtOnceWhereNothingElseArrives) {
  const BatchCurve curve = Linear(10, 1);
  const Decision decision = Decide(kLatency, {Line(curve, 1)}, kStart);
  EXPECT_EQ(decision.line, 0);
  EXPECT_EQ(decision.images, 1);
  EXPECT_EQ(decision.trigger, BatchTrigger::kDelay);
}

TEST(DecideTest, WaitsForTheNextSizeIfArrivalsReachIt) {
  const BatchCurve curve = Linear(10, 1);
  WaitingLine line = Line(curve, 1);
  line.gap = Ms(1);
  const Decision decision = Decide(kLatency, {line}, kStart);
  EXPECT_EQ(decision.line, -1);
  // The task may wait until 5 ms, and the mean gap between arrivals is 1 ms. If
  // no task has arrived by 4 ms, the next arrival is expected after 5 ms.
  EXPECT_EQ(decision.wake, At(4));
  EXPECT_EQ(Decide(kLatency, {line}, At(4)).line, 0);
  line.gap = Ms(6);
  EXPECT_EQ(Decide(kLatency, {line}, kStart).line, 0);
}

TEST(LeaveAtTest, ALongWaitEndsEarlierBeforeTheDeadlineThanAShortOne) {
  const BatchCurve curve = Linear(10, 1);  // One image takes 11 ms.
  const ScheduleOptions options = Options(BatchMode::kThroughput, 1e6);
  EXPECT_EQ(LeaveAt(options, Line(curve, 1, 16)), At(16 - 11 - 1));
  EXPECT_EQ(LeaveAt(options, Line(curve, 1, 320)), At(320 - 11 - 10));
  EXPECT_EQ(LeaveAt(options, Line(curve, 1, 6400)), At(6400 - 11 - 20));
}

TEST(DecideTest, WaitsForHalfTheTimeOfAnImageAtMost) {
  const BatchCurve curve = Linear(3, 1);
  WaitingLine line = Line(curve, 1);
  line.gap = Ms(0.5);
  EXPECT_EQ(Decide(kLatency, {line}, kStart).wake, At(1.5));
}

TEST(DecideTest, DoesNotWaitForLessThanAThreadTakesToFallAsleep) {
  const BatchCurve quick = Linear(0.15, 0.04), slower = Linear(0.15, 0.06);
  WaitingLine line = Line(quick, 1);
  line.gap = Ms(0.01);
  EXPECT_EQ(Decide(kLatency, {line}, kStart).line, 0);
  line.curve = &slower;
  EXPECT_EQ(Decide(kLatency, {line}, kStart).line, -1);
}

TEST(DecideTest, DoesNotWaitUntilTheMostUrgentIsLate) {
  const BatchCurve curve = Linear(10, 1);
  WaitingLine line = Line(curve, 1, 15);
  line.gap = Ms(0.5);
  // The deadline is 15 ms, and the margin is 1 ms. In latency mode, the batch
  // waits for a second task. A batch of two tasks takes 12 ms, so the second
  // task must arrive by 15 - 12 - 1 = 2 ms. The mean gap between arrivals is
  // 0.5 ms, so the wait ends at 2 - 0.5 = 1.5 ms.
  EXPECT_EQ(Decide(kLatency, {line}, kStart).wake, At(1.5));
  // In throughput mode, the gap does not matter. The task must leave in time
  // even if it stays alone. A batch of one task takes 11 ms, so the wait ends
  // at 15 - 11 - 1 = 3 ms.
  EXPECT_EQ(Decide(kThroughput, {line}, kStart).wake, At(3));
}

TEST(DecideTest, ThroughputWaitsForTheBestSizeWhateverArrives) {
  const BatchCurve curve = Linear(10, 1);
  EXPECT_EQ(Decide(kThroughput, {Line(curve, 7)}, kStart).wake, At(5));
  EXPECT_EQ(Decide(kThroughput, {Line(curve, 8)}, kStart).images, 8);
}

TEST(DecideTest, ThroughputDoesNotWaitWhereBatchesSaveNothing) {
  const BatchCurve curve = Linear(0, 100);
  const Decision decision = Decide(kThroughput, {Line(curve, 1)}, kStart);
  EXPECT_EQ(decision.line, 0);
  EXPECT_EQ(decision.trigger, BatchTrigger::kFull);
}

// Returns the size of the batch that leaves when `after` has passed since the
// curve was measured.
int Tried(const WaitingLine& line, absl::Duration after,
          const ScheduleOptions& options = kLatency) {
  WaitingLine later = line;
  for (absl::Time* time : {&later.oldest, &later.start_by, &later.finish_by}) {
    *time += after;
  }
  return Decide(options, {later}, kStart + after).images;
}

TEST(DecideTest, TriesTwiceAsManyOnceInAWhile) {
  const BatchCurve nothing_saved = Linear(0, 10);
  const absl::Duration soon = absl::Seconds(5), late = soon + Ms(1);
  EXPECT_EQ(Tried(Line(nothing_saved, 8), soon), 1);
  EXPECT_EQ(Tried(Line(nothing_saved, 8), late), 2);
  EXPECT_EQ(Tried(Line(nothing_saved, 8), late, kThroughput), 2);
  EXPECT_EQ(Tried(Line(nothing_saved, 1), late), 1);
  EXPECT_EQ(Tried(Line(nothing_saved, 8, 20), late), 2);
  EXPECT_EQ(Tried(Line(nothing_saved, 8, 19), late), 1) << "it would be late";
}

TEST(DecideTest, TriesWhatTakesLongerThanOneByOne) {
  const auto two = [](double ms) {
    BatchCurve curve(8);
    curve.Set(1, {Ms(10), Ms(10)}, kStart);
    for (int n = 2; n <= 8; n *= 2) {
      curve.Set(n, {Ms(n * ms / 2), Ms(n * ms / 2)}, kStart);
    }
    return curve;
  };
  BatchCurve curve = two(48);
  EXPECT_EQ(Tried(Line(two(1000), 8, 20), absl::Seconds(6)), 2)
      << "in time if two take twice as long as one";
  absl::Duration after;
  for (int run = 0; run < 5; ++run) {
    EXPECT_EQ(Tried(Line(curve, 8), after + absl::Seconds(4)), 1) << run;
    after += absl::Seconds(6);
    EXPECT_EQ(Tried(Line(curve, 8), after), 2) << run;
    curve.Record(2, Ms(28), kStart + after);
  }
}

// Runs batches for the time `length`, while `waiting` images wait. Decide()
// chooses the batches. Returns the size of the last batch. A batch of n images
// takes 6 + 3n ms, but the first `long_batches` batches of 8 images take 110
// ms.
int Learn(BatchCurve* curve, absl::Time begin, absl::Duration length,
          int waiting = 16, int long_batches = 0) {
  absl::Time now = begin;
  int images = 0;
  while (now < begin + length) {
    WaitingLine line = Line(*curve, waiting);
    line.oldest = now;
    line.start_by = line.finish_by = now + Ms(500);
    images = Decide(kLatency, {line}, now).images;
    if (images < 1) return images;
    const bool is_long = images == 8 && long_batches-- > 0;
    const absl::Duration took = Ms(is_long ? 110 : 6 + 3 * images);
    now += took;
    curve->Record(images, took, now);
  }
  return images;
}

int LearnForAMinute(BatchCurve* curve) {
  return Learn(curve, kStart, absl::Minutes(1));
}

// Returns a curve with measured batches of 1, 2, 4 and 8 images.
BatchCurve Measured() {
  BatchCurve curve(8);
  for (int n = 1; n <= 8; n *= 2) {
    curve.Set(n, {Ms(6 + 3 * n), Ms(6 + 3 * n)}, kStart);
  }
  return curve;
}

TEST(DecideTest, ALongBatchAfterSingleImagesIsForgottenAtOnce) {
  BatchCurve curve = Measured();
  EXPECT_EQ(Learn(&curve, kStart, absl::Minutes(1), 1), 1);
  EXPECT_EQ(Learn(&curve, kStart + absl::Minutes(1), Ms(150), 16, 1), 8);
}

TEST(DecideTest, BatchesThatTookLongByAccidentAreTriedAgain) {
  BatchCurve curve = Measured();
  EXPECT_EQ(LearnForAMinute(&curve), 8);
  const absl::Time begin = kStart + absl::Minutes(1);
  EXPECT_EQ(Learn(&curve, begin, absl::Seconds(4), 16, 20), 4);
  EXPECT_EQ(Learn(&curve, begin + absl::Seconds(4), absl::Seconds(4)), 8);
}

// The curves seem to show that batches save no time, because other programs
// disturbed the measurements.
TEST(DecideTest, UnlearnsThatBatchesSaveNothing) {
  for (const int ms : {12, 24}) {
    BatchCurve every = Linear(0, ms);
    EXPECT_EQ(LearnForAMinute(&every), 8) << ms;
    EXPECT_EQ(every.best_size(), 8) << ms;
    // Only batches of one image were measured. The times of larger batches were
    // extrapolated from this time.
    BatchCurve multiples(8);
    for (int n = 1; n <= 8; n *= 2) {
      multiples.Set(n, {Ms(n * ms), Ms(n * ms)}, kStart);
    }
    EXPECT_EQ(LearnForAMinute(&multiples), 8) << ms;
    EXPECT_EQ(multiples.best_size(), 8) << ms;
  }
  // One image was measured on an idle machine, and larger batches were measured
  // beside other programs.
  BatchCurve unequal(8);
  unequal.Set(1, {Ms(9), Ms(9)}, kStart);
  for (int n = 2; n <= 8; n *= 2) {
    unequal.Set(n, {Ms(12 * n), Ms(12 * n)}, kStart);
  }
  EXPECT_EQ(LearnForAMinute(&unequal), 8);
}

TEST(ChooseSizeTest, ImagesLeaveOneByOneWhereBatchesSaveNothing) {
  const BatchCurve curve = Linear(0, 100);
  EXPECT_EQ(ChooseSize(kLatency, Line(curve, 3)), 1);
  EXPECT_EQ(ChooseSize(kLatency, Line(curve, 20)), 1);
}

TEST(ChooseSizeTest, CutsOrPadsAsIsCheaper) {
  // Returns a curve of a device that pads each batch to 4 or 8 images. `four`
  // and `eight` are the times of these batches.
  const auto padded = [](double four, double eight) {
    BatchCurve curve(8);
    for (int n = 1; n <= 8; ++n) {
      curve.Set(n, {Ms(n <= 4 ? four : eight), Ms(n <= 4 ? four : eight)},
                kStart);
    }
    return curve;
  };
  const BatchCurve cheap = padded(10, 11), dear = padded(10, 25);
  EXPECT_EQ(ChooseSize(kLatency, Line(cheap, 5)), 5);
  EXPECT_EQ(ChooseSize(kLatency, Line(dear, 5)), 4);
}

TEST(ChooseSizeTest, CutsWhereTheRestWillHaveGrownToABatch) {
  BatchCurve curve(8);
  for (int n = 1; n <= 8; ++n) {
    const absl::Duration took = Ms(n <= 4 ? 10 : 18);
    curve.Set(n, {took, took}, kStart);
  }
  WaitingLine line = Line(curve, 6);
  EXPECT_EQ(ChooseSize(kLatency, line), 6);
  line.gap = Ms(5);
  EXPECT_EQ(ChooseSize(kLatency, line), 4);
  line.gap = Ms(6);
  EXPECT_EQ(ChooseSize(kLatency, line), 6) << "one is missing after 10 ms";
}

TEST(ChooseSizeTest, CutsWhereMoreWaitThanABatchTakes) {
  BatchCurve curve(6);
  for (int n = 1; n <= 6; ++n) {
    const absl::Duration took = Ms(n <= 4 ? 10 : 15);
    curve.Set(n, {took, took}, kStart);
  }
  ScheduleOptions options = kLatency;
  options.max_batch_size = 6;
  EXPECT_EQ(ChooseSize(options, Line(curve, 6)), 6);
  EXPECT_EQ(ChooseSize(options, Line(curve, 7)), 4);
}

TEST(ChooseSizeTest, TakesAllWhereNothingIsKnown) {
  const BatchCurve curve(8);
  EXPECT_EQ(ChooseSize(kLatency, Line(curve, 5)), 5);
  EXPECT_EQ(ChooseSize(kLatency, Line(curve, 50)), 8);
}

TEST(DecideTest, TheFirstLineLeavesFirst) {
  const BatchCurve curve = Linear(10, 1);
  const Decision decision =
      Decide(kLatency, {Line(curve, 1, 400), Line(curve, 8, 300)}, kStart);
  EXPECT_EQ(decision.line, 0);
}

TEST(DecideTest, ABatchThatIsAboutAsFullDoesNotGoFirst) {
  const BatchCurve curve = Linear(0.2, 1);
  ScheduleOptions eager = kLatency;
  eager.max_queue_delay = absl::ZeroDuration();
  WaitingLine growing = Line(curve, 4, 400);
  growing.gap = Ms(1);
  // The batch of eight computes 976 images per second, and the batch of four
  // 952.
  EXPECT_EQ(Decide(eager, {growing, Line(curve, 8, 500)}, kStart).line, 0);
}

TEST(DecideTest, AFullerBatchGoesFirstIfNobodyBecomesLate) {
  const BatchCurve curve = Linear(10, 1);
  const auto first = [&](double deadline, absl::Duration gap,
                         absl::Time now = kStart, bool is_overdue = false) {
    WaitingLine growing = Line(curve, 1, deadline);
    growing.gap = gap;
    growing.is_overdue = is_overdue;
    ScheduleOptions eager = kLatency;
    eager.max_queue_delay = absl::ZeroDuration();
    return Decide(eager, {growing, Line(curve, 8, 500)}, now).line;
  };
  EXPECT_EQ(first(400, Ms(5)), 1);
  EXPECT_EQ(first(400, Ms(5), kStart, true), 0) << "its turn is overdue";
  EXPECT_EQ(first(400, Ms(18)), 1) << "a batch of eight takes 18 ms";
  EXPECT_EQ(first(400, Ms(19)), 0) << "it would not grow";
  EXPECT_EQ(first(18 + 11, Ms(5)), 1);
  EXPECT_EQ(first(18 + 10, Ms(5)), 0) << "it would be late";
  EXPECT_EQ(first(400, Ms(5), At(200)), 1);
  EXPECT_EQ(first(400, Ms(5), At(201)), 0) << "it has waited for long";
}

TEST(DecideTest, AFullerBatchMakesNoneOfSeveralLinesLate) {
  const BatchCurve curve = Linear(10, 1);  // One image: 11 ms, eight: 18 ms.
  ScheduleOptions eager = kLatency;
  eager.max_queue_delay = absl::ZeroDuration();
  const auto leaves = [&](int second, double deadline, int third) {
    WaitingLine first = Line(curve, 1, 29);
    first.gap = Ms(5);
    return Decide(
               eager,
               {first, Line(curve, second, deadline), Line(curve, third, 500)},
               kStart)
        .line;
  };
  EXPECT_EQ(leaves(1, 40, 8), 2);
  EXPECT_EQ(leaves(1, 39, 8), 0) << "18 + 11 ms, then its own 11";
  EXPECT_EQ(leaves(8, 40, 1), 1) << "only others must not become late";
  EXPECT_EQ(leaves(8, 400, 4), 1) << "the fullest";
}

}  // namespace
}  // namespace sfmamba::batching
