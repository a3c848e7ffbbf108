// Tests the reports of a batcher to its observer.

#include <array>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "server/batching/batcher.h"
#include "tests/server/batching/batch_tasks.h"
#include "tests/server/batching/blocking_run.h"
#include "tests/testing/patience.h"

namespace sfmamba::batching {
namespace {

// Stores the latest report of each kind.
class QueueLog : public Batcher::Observer {
 public:
  void QueueChanged(server::Priority priority,
                    const WaitingTasks::Waiting& new_waiting) override {
    absl::MutexLock lock(&mu);
    waiting[static_cast<int>(priority)] = new_waiting;
  }
  void WaitPredicted(absl::Duration new_wait, absl::Duration new_backlog,
                     int new_active_clients) override {
    absl::MutexLock lock(&mu);
    wait = new_wait;
    backlog = new_backlog;
    active_clients = new_active_clients;
  }
  void BatchEnded(const BatchQueue::BatchDuration& new_times) override {
    absl::MutexLock lock(&mu);
    times.push_back(new_times);
  }

  int batches() {
    absl::MutexLock lock(&mu);
    return static_cast<int>(times.size());
  }

  absl::Mutex mu;
  std::array<WaitingTasks::Waiting, server::kPriorityCount> waiting
      ABSL_GUARDED_BY(mu);  // By priority.
  absl::Duration wait ABSL_GUARDED_BY(mu) = absl::InfiniteDuration();
  absl::Duration backlog ABSL_GUARDED_BY(mu) = absl::InfiniteDuration();
  int active_clients ABSL_GUARDED_BY(mu) = -1;
  std::vector<BatchQueue::BatchDuration> times ABSL_GUARDED_BY(mu);
};

TEST(BatcherObserverTest, IsToldWhatWaitsOfEachPriority) {
  FakeClock clock;
  BlockingRun runs;
  QueueLog log;
  Batcher batcher(Options(1, absl::ZeroDuration()), OneThread(), runs.run(),
                  &log, clock.clock());
  Answer first, second, third;
  batcher.Submit(MakeTask(first));
  runs.WaitUntilStarted();
  const absl::Time submitted = clock.Now();
  batcher.Submit(MakeTask(second));
  clock.Advance(absl::Seconds(1));
  BatchTask low = MakeTask(third);
  low.priority = server::Priority::kLow;
  batcher.Submit(std::move(low));
  {
    absl::MutexLock lock(&log.mu);
    const auto& [none, normal, lowest] = log.waiting;
    EXPECT_EQ(none.tasks, 0);
    EXPECT_EQ(none.oldest, absl::InfiniteFuture());
    EXPECT_EQ(normal.tasks, 1);
    EXPECT_EQ(normal.bytes, 12);
    EXPECT_EQ(normal.oldest, submitted);
    EXPECT_EQ(lowest.tasks, 1);
    EXPECT_EQ(lowest.bytes, 12);
    EXPECT_EQ(lowest.oldest, submitted + absl::Seconds(1));
  }
  runs.Release();
  EXPECT_TRUE(second.Wait().ok());
  EXPECT_TRUE(third.Wait().ok());
  absl::MutexLock lock(&log.mu);
  for (const WaitingTasks::Waiting& waiting : log.waiting) {
    EXPECT_EQ(waiting.tasks, 0);
    EXPECT_EQ(waiting.bytes, 0);
    EXPECT_EQ(waiting.oldest, absl::InfiniteFuture());
  }
}

TEST(BatcherObserverTest, IsToldThatWhatExpiredWaitsNoMore) {
  FakeClock clock;
  BlockingRun runs;
  QueueLog log;
  Batcher batcher(Options(1, absl::ZeroDuration()), OneThread(), runs.run(),
                  &log, clock.clock());
  Answer running, expired;
  batcher.Submit(MakeTask(running));
  runs.WaitUntilStarted();
  batcher.Submit(MakeTask(expired, clock.Now() + absl::Seconds(1)));
  clock.Advance(absl::Seconds(1));
  EXPECT_TRUE(absl::IsDeadlineExceeded(expired.Wait()));
  {
    absl::MutexLock lock(&log.mu);
    EXPECT_EQ(log.waiting[static_cast<int>(server::Priority::kNormal)].tasks,
              0);
  }
  runs.Release();
}

TEST(BatcherObserverTest, IsToldHowLongBatchesTookAndTheNextWouldWait) {
  FakeClock clock;
  QueueLog log;
  Batcher batcher(Options(1, absl::ZeroDuration()), OneThread(),
                  OnEachThread([&](Batch batch) {
                    clock.Advance(absl::Milliseconds(200));
                    AnswerAll(std::move(batch));
                  }),
                  &log, clock.clock());
  for (int i = 1; i <= 2; ++i) {
    Answer answer;
    batcher.Submit(MakeTask(answer));
    EXPECT_TRUE(answer.Wait().ok());
    WaitUntil([&] { return log.batches() == i; }, "the end of a batch");
  }
  absl::MutexLock lock(&log.mu);
  EXPECT_EQ(log.wait, absl::ZeroDuration());
  EXPECT_EQ(log.times[0].predicted, absl::ZeroDuration()) << "nothing known";
  EXPECT_EQ(log.times[1].predicted, absl::Milliseconds(200));
  EXPECT_EQ(log.times[1].measured, absl::Milliseconds(200));
}

TEST(BatcherObserverTest, IsToldTheNextWaitWhenABatchEnds) {
  FakeClock clock;
  QueueLog log;
  absl::Notification all;
  std::vector<absl::Duration> waits, backlogs;  // At each batch's start.
  Batcher batcher(Options(1, absl::ZeroDuration()), OneThread(),
                  OnEachThread([&](Batch batch) {
                    WaitFor(all, "all tasks");
                    {
                      absl::MutexLock lock(&log.mu);
                      waits.push_back(log.wait);
                      backlogs.push_back(log.backlog);
                    }
                    clock.Advance(absl::Milliseconds(200));
                    AnswerAll(std::move(batch));
                  }),
                  &log, clock.clock());
  const absl::Duration time = absl::Milliseconds(200);
  batcher.ImportProfile({{BatchKey(), 1, time, time}});
  Answer answers[3];
  for (Answer& answer : answers) batcher.Submit(MakeTask(answer));
  all.Notify();
  for (Answer& answer : answers) EXPECT_TRUE(answer.Wait().ok());
  EXPECT_EQ(waits[1], time) << "a new client's turn is after one of both";
  EXPECT_EQ(waits[2], time);
  EXPECT_EQ(backlogs[1], 2 * time) << "but both wait";
  EXPECT_EQ(backlogs[2], time);
  WaitUntil([&] { return log.batches() == 3; }, "the end of the last batch");
  absl::MutexLock lock(&log.mu);
  EXPECT_EQ(log.active_clients, 0);
}

// The duration of a failed batch is not useful, because the halves of the batch
// run again.
TEST(BatcherObserverTest, TheTimeOfABatchThatFailedIsNotLearnt) {
  FakeClock clock;
  QueueLog log;
  bool fails = true;  // Used only by the batcher's thread.
  Batcher batcher(
      Options(1, absl::ZeroDuration()), OneThread(),
      [&](int) {
        return [&](Batch batch) {
          clock.Advance(fails ? absl::Hours(1) : absl::Milliseconds(200));
          AnswerAll(std::move(batch));
          Batcher::Ran ran;
          ran.succeeded = !std::exchange(fails, false);
          return ran;
        };
      },
      &log, clock.clock());
  for (int i = 0; i < 3; ++i) {
    Answer answer;
    batcher.Submit(MakeTask(answer));
    EXPECT_TRUE(answer.Wait().ok());
    WaitUntil([&] { return log.batches() == i; }, "the end of a batch");
  }
  absl::MutexLock lock(&log.mu);
  EXPECT_EQ(log.times[0].predicted, absl::ZeroDuration()) << "nothing known";
  EXPECT_EQ(log.times[1].predicted, absl::Milliseconds(200));
}

TEST(BatcherObserverTest, TheBatcherTellsSinceWhenABatchRuns) {
  FakeClock clock;
  BlockingRun runs;
  Answer answer;
  Batcher batcher(Options(1, absl::ZeroDuration()), OneThread(), runs.run(),
                  nullptr, clock.clock());
  clock.Advance(absl::Minutes(1));
  EXPECT_EQ(batcher.RunningSince(), absl::InfiniteFuture());
  const absl::Time started = clock.Now();
  batcher.Submit(MakeTask(answer));
  runs.WaitUntilStarted();
  clock.Advance(absl::Minutes(1));
  EXPECT_EQ(batcher.RunningSince(), started);
  runs.Release();
  EXPECT_TRUE(answer.Wait().ok());
}

}  // namespace
}  // namespace sfmamba::batching
