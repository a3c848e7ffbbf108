// Tests batchers with several threads.

#include <functional>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "base/steady_clock.h"
#include "gtest/gtest.h"
#include "server/batching/batcher.h"
#include "tests/server/batching/batch_tasks.h"
#include "tests/testing/patience.h"

namespace sfmamba::batching {
namespace {

// Blocks each batch until the test releases its task. Each batch has one task.
class HoldingRun {
 public:
  Batcher::MakeRun run() {
    return OnEachThread([this](Batch batch) {
      const int64_t id = batch.tasks[0].image.original_width;
      {
        absl::MutexLock lock(&mu_);
        running_.insert(id);
        const auto released = [this, id]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
          return released_.count(id) > 0;
        };
        TimeLimit limit("the test's leave to end a batch", kTestPatience);
        mu_.Await(absl::Condition(&released));
        running_.erase(id);
      }
      AnswerAll(std::move(batch));
    });
  }
  void Release(int64_t id) {
    absl::MutexLock lock(&mu_);
    released_.insert(id);
  }
  // Waits until exactly these tasks run.
  void WaitUntilRunning(const std::set<int64_t>& ids) {
    const auto as_wanted = [this, &ids]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return running_ == ids;
    };
    TimeLimit limit("the batches that are to run");
    absl::MutexLock lock(&mu_, absl::Condition(&as_wanted));
  }
  std::set<int64_t> running() {
    absl::MutexLock lock(&mu_);
    return running_;
  }

 private:
  absl::Mutex mu_;
  std::set<int64_t> running_ ABSL_GUARDED_BY(mu_);
  std::set<int64_t> released_ ABSL_GUARDED_BY(mu_);
};

BatchTask MakeNumberedTask(Answer& answer, int id) {
  BatchTask task = MakeTask(answer);
  task.image.original_width = id;
  return task;
}

TEST(BatcherThreadsTest,
     AsManyBatchesRunAsThereAreThreadsAndAFreeOneTakesTheNext) {
  HoldingRun runs;
  Answer answers[6];
  Batcher batcher(Options(1, absl::ZeroDuration()), Threads(3), runs.run());
  for (int i = 0; i < 6; ++i) batcher.Submit(MakeNumberedTask(answers[i], i));
  runs.WaitUntilRunning({0, 1, 2});
  EXPECT_TRUE(batcher.room().Take(1021, 0).ok());  // Three tasks still wait.
  EXPECT_FALSE(batcher.room().Take(1022, 0).ok());
  runs.Release(1);
  runs.WaitUntilRunning({0, 2, 3});
  EXPECT_TRUE(answers[1].Wait().ok());
  runs.Release(0);
  runs.WaitUntilRunning({2, 3, 4});
  for (int i : {2, 3, 4, 5}) runs.Release(i);
  for (Answer& answer : answers) EXPECT_TRUE(answer.Wait().ok());
}

TEST(BatcherThreadsTest, OfSeveralBatchesTheOldestTellsSinceWhenOneRuns) {
  FakeClock clock;
  HoldingRun runs;
  Answer answers[2];
  Batcher batcher(Options(1, absl::ZeroDuration()), Threads(2), runs.run(),
                  nullptr, clock.clock());
  const absl::Time first = clock.Now();
  batcher.Submit(MakeNumberedTask(answers[0], 0));
  runs.WaitUntilRunning({0});
  clock.Advance(absl::Seconds(5));
  const absl::Time second = clock.Now();
  batcher.Submit(MakeNumberedTask(answers[1], 1));
  runs.WaitUntilRunning({0, 1});
  clock.Advance(absl::Seconds(5));
  EXPECT_EQ(batcher.RunningSince(), first);
  runs.Release(0);
  WaitUntil([&] { return batcher.RunningSince() != first; },
            "the end of the first batch");
  EXPECT_EQ(batcher.RunningSince(), second);
  runs.Release(1);
  WaitUntil([&] { return batcher.RunningSince() != second; },
            "the end of the second batch");
  EXPECT_EQ(batcher.RunningSince(), absl::InfiniteFuture());
}

TEST(BatcherThreadsTest, AWaitingTaskExpiresWhileEachThreadRuns) {
  HoldingRun runs;
  Answer running[2], expired;
  Batcher batcher(Options(1, absl::ZeroDuration()), Threads(2), runs.run());
  for (int i : {0, 1}) batcher.Submit(MakeNumberedTask(running[i], i));
  runs.WaitUntilRunning({0, 1});
  batcher.Submit(MakeTask(expired, base::SteadyNow() + absl::Milliseconds(5)));
  EXPECT_EQ(expired.Wait().code(), absl::StatusCode::kDeadlineExceeded);
  for (int i : {0, 1}) runs.Release(i);
}

TEST(BatcherThreadsTest, TheDestructorRunsWhatWaitsOnEachThread) {
  HoldingRun runs;
  Answer answers[5];
  auto batcher =
      std::make_unique<Batcher>(Options(1, kNever), Threads(2), runs.run());
  for (int i = 0; i < 5; ++i) batcher->Submit(MakeNumberedTask(answers[i], i));
  runs.WaitUntilRunning({0, 1});
  std::thread stopper([&] { batcher.reset(); });
  for (int i = 0; i < 5; ++i) runs.Release(i);
  Join(stopper, "the destructor");
  for (Answer& answer : answers) {
    ASSERT_TRUE(answer.done.HasBeenNotified());
    EXPECT_TRUE(answer.status.ok());
  }
}

// Records the threads on which a Run is made, called and destroyed.
class ThreadLog {
 public:
  void Add() {
    absl::MutexLock lock(&mu_);
    ids_.push_back(std::this_thread::get_id());
  }
  std::vector<std::thread::id> ids() {
    absl::MutexLock lock(&mu_);
    return ids_;
  }

 private:
  absl::Mutex mu_;
  std::vector<std::thread::id> ids_ ABSL_GUARDED_BY(mu_);
};

class LoggingRun {
 public:
  explicit LoggingRun(ThreadLog* log) : log_(*log) { log_.Add(); }
  ~LoggingRun() { log_.Add(); }
  void operator()(Batch batch) {
    log_.Add();
    AnswerAll(std::move(batch));
  }

 private:
  ThreadLog& log_;
};

TEST(BatcherThreadsTest, ARunIsMadeCalledAndDestroyedOnItsThread) {
  ThreadLog logs[2];
  Answer answers[4];
  {
    Batcher batcher(Options(1, absl::ZeroDuration()), Threads(2),
                    [&](int thread) {
                      auto run = std::make_unique<LoggingRun>(&logs[thread]);
                      return [run = std::move(run)](Batch batch) {
                        (*run)(std::move(batch));
                        return Batcher::Ran();
                      };
                    });
    for (Answer& answer : answers) {
      batcher.Submit(MakeTask(answer));
      EXPECT_TRUE(answer.Wait().ok());
    }
  }
  EXPECT_EQ(logs[0].ids().size() + logs[1].ids().size(), 2 + 4 + 2);
  EXPECT_NE(logs[0].ids()[0], logs[1].ids()[0]);
  for (ThreadLog& log : logs) {
    for (const std::thread::id& id : log.ids()) {
      EXPECT_EQ(id, log.ids()[0]);
      EXPECT_NE(id, std::this_thread::get_id());
    }
  }
}

TEST(BatcherThreadsTest, TheThreadThatHasBeenFreeLongestTakesTheNextBatch) {
  constexpr int kThreads = 3;
  HoldingRun runs;
  absl::Mutex mu;
  std::vector<int> order(4 * kThreads);  // The thread that ran each task.
  Batcher batcher(
      Options(1, absl::ZeroDuration()), Threads(kThreads), [&](int thread) {
        return [&, thread, run = runs.run()(thread)](Batch batch) mutable {
          {
            absl::MutexLock lock(&mu);
            order[batch.tasks[0].image.original_width] = thread;
          }
          return run(std::move(batch));
        };
      });
  Answer answers[4 * kThreads];
  // All threads run a batch. Their batches then end in the order of the tasks.
  for (int id = 0; id < kThreads; ++id) {
    batcher.Submit(MakeNumberedTask(answers[id], id));
  }
  runs.WaitUntilRunning({0, 1, 2});
  for (int id = 0; id < kThreads; ++id) {
    const absl::Time oldest = batcher.RunningSince();
    runs.Release(id);
    WaitUntil([&] { return batcher.RunningSince() != oldest; },
              "the end of a batch");
  }
  for (int id = kThreads; id < 4 * kThreads; ++id) {
    runs.Release(id);
    batcher.Submit(MakeNumberedTask(answers[id], id));
    EXPECT_TRUE(answers[id].Wait().ok());
    WaitUntil([&] { return batcher.RunningSince() == absl::InfiniteFuture(); },
              "the end of the batch");
  }
  absl::MutexLock lock(&mu);
  for (size_t i = kThreads; i < order.size(); ++i) {
    EXPECT_EQ(order[i], order[i - kThreads]) << i;
  }
}

}  // namespace
}  // namespace sfmamba::batching
