#include "server/batching/batcher.h"

#include <pthread.h>

#include <atomic>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "base/steady_clock.h"
#include "gtest/gtest.h"
#include "server/errors/error.h"
#include "tests/server/batching/batch_tasks.h"
#include "tests/server/batching/blocking_run.h"
#include "tests/testing/patience.h"

namespace sfmamba::batching {
namespace {

std::string Reason(const absl::Status& status) {
  return server::GetErrorDetail(status).reason;
}

TEST(BatcherTest, RunsAFullBatchAtOnce) {
  BlockingRun runs;
  runs.Release();
  Batcher batcher(Options(3, kNever), OneThread(), runs.run());
  Answer answers[3];
  for (Answer& answer : answers) batcher.Submit(MakeTask(answer));
  for (Answer& answer : answers) EXPECT_TRUE(answer.Wait().ok());
  EXPECT_EQ(runs.sizes(), std::vector<int>({3}));
  EXPECT_EQ(runs.triggers()[0], BatchTrigger::kFull);
}

TEST(BatcherTest, RunsASmallBatchAfterTheDelay) {
  BlockingRun runs;
  runs.Release();
  Batcher batcher(Options(3, absl::Milliseconds(1)), OneThread(), runs.run());
  Answer answer;
  batcher.Submit(MakeTask(answer));
  EXPECT_TRUE(answer.Wait().ok());
  EXPECT_EQ(runs.triggers()[0], BatchTrigger::kDelay);
}

TEST(BatcherTest, GathersWhileABatchRuns) {
  BlockingRun runs;
  Batcher batcher(Options(8, absl::ZeroDuration()), OneThread(), runs.run());
  Answer answers[6];
  batcher.Submit(MakeTask(answers[0]));
  runs.WaitUntilStarted();
  for (int i = 1; i < 6; ++i) batcher.Submit(MakeTask(answers[i]));
  runs.Release();
  for (Answer& answer : answers) EXPECT_TRUE(answer.Wait().ok());
  EXPECT_EQ(runs.sizes(), std::vector<int>({1, 5}));
}

TEST(BatcherTest, AnswersAnExpiredTaskWhileABatchRuns) {
  BlockingRun runs;
  Batcher batcher(Options(1, absl::ZeroDuration()), OneThread(), runs.run());
  Answer running, expired;
  batcher.Submit(MakeTask(running));
  runs.WaitUntilStarted();
  batcher.Submit(MakeTask(expired, base::SteadyNow() + absl::Milliseconds(5)));
  const absl::Status status =
      expired.Wait();  // The first batch is still running.
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Reason(status), "EXPIRED_IN_QUEUE");
  const auto metadata = server::GetErrorDetail(status).metadata;
  ASSERT_EQ(metadata.size(), 1);
  EXPECT_EQ(metadata[0],
            std::make_pair(std::string("stage"), std::string("queue")));
  runs.Release();
  EXPECT_TRUE(running.Wait().ok());
  EXPECT_EQ(runs.sizes(), std::vector<int>({1}));
}

// The drop thread waits without a timeout after it has found the queue empty
// twice.
TEST(BatcherTest, ACancelledTaskIsAnsweredThoughNoneCameForLong) {
  absl::Notification answered;
  std::atomic<int> looks{0};
  const auto clock = [&looks] {
    ++looks;
    return base::SteadyNow();
  };
  const auto make_run = [&answered](int) {
    WaitFor(answered, "an answer", kTestPatience);
    return [](Batch) { return Batcher::Ran(); };
  };
  Batcher batcher(Options(1, absl::ZeroDuration()), OneThread(), make_run,
                  nullptr, clock);
  WaitUntil([&looks] { return looks.load() >= 2; }, "two looks");
  char thread[16] = "";
  BatchTask task;
  task.cancelled = std::make_shared<std::atomic<bool>>(true);
  task.done = [&](absl::StatusOr<model::Result> result, const BatchInfo&) {
    pthread_getname_np(pthread_self(), thread, sizeof(thread));
    EXPECT_TRUE(absl::IsCancelled(result.status()));
    answered.Notify();
  };
  batcher.Submit(std::move(task));
  WaitFor(answered, "an answer");
  EXPECT_STREQ(thread, "batch-drop");
}

TEST(BatcherTest, ATaskDoesNotExpireForTheSakeOfABatchsDelay) {
  BlockingRun runs;
  runs.Release();
  Batcher batcher(Options(2, kNever), OneThread(), runs.run());
  Answer answer;
  batcher.Submit(MakeTask(answer, base::SteadyNow() + absl::Seconds(1)));
  EXPECT_EQ(answer.Wait(), absl::OkStatus());
  EXPECT_EQ(runs.sizes(), std::vector<int>({1}));
}

TEST(BatcherTest, GivesBackTasksThatWouldEndTooLate) {
  FakeClock clock;
  int ran = 0;
  Batcher batcher(Options(1, absl::ZeroDuration()), OneThread(),
                  OnEachThread([&](Batch batch) {
                    ++ran;
                    clock.Advance(absl::Milliseconds(200));
                    AnswerAll(std::move(batch));
                  }),
                  nullptr, clock.clock());
  Answer first, late, soon;
  batcher.Submit(MakeTask(first));
  EXPECT_TRUE(first.Wait().ok());
  BatchTask task = MakeTask(late);
  task.finish_by = clock.Now() + absl::Milliseconds(100);
  // The duration of the first batch is recorded before the next batch forms.
  batcher.Submit(std::move(task));
  const absl::Status status = late.Wait();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Reason(status), "EXPIRED_IN_QUEUE");
  EXPECT_EQ(ran, 1);
  task = MakeTask(soon);
  task.finish_by = clock.Now() + absl::Milliseconds(500);
  batcher.Submit(std::move(task));
  EXPECT_TRUE(soon.Wait().ok());
}

TEST(BatcherTest, NeverRunsATaskThatComesLate) {
  FakeClock clock;
  BlockingRun runs;
  runs.Release();
  Batcher batcher(Options(1, absl::ZeroDuration()), OneThread(), runs.run(),
                  nullptr, clock.clock());
  Answer answer;
  batcher.Submit(MakeTask(answer, clock.Now()));
  EXPECT_EQ(answer.Wait().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(runs.sizes().empty());
}

TEST(BatcherTest, DropsByTheClockItWasGiven) {
  FakeClock clock;
  BlockingRun runs;
  runs.Release();
  Batcher batcher(Options(2, kNever), OneThread(), runs.run(), nullptr,
                  clock.clock());
  Answer expired, first, second;
  batcher.Submit(MakeTask(expired, clock.Now() + absl::Minutes(30)));
  clock.Advance(absl::Minutes(31));
  EXPECT_EQ(expired.Wait().code(), absl::StatusCode::kDeadlineExceeded);
  batcher.Submit(MakeTask(first));
  batcher.Submit(MakeTask(second));
  EXPECT_TRUE(first.Wait().ok());
  EXPECT_TRUE(second.Wait().ok());
}

TEST(BatcherTest, AnswersACancelledTaskWhileABatchRuns) {
  BlockingRun runs;
  Batcher batcher(Options(1, absl::ZeroDuration()), OneThread(), runs.run());
  Answer running, cancelled;
  batcher.Submit(MakeTask(running));
  runs.WaitUntilStarted();
  const auto flag = std::make_shared<std::atomic<bool>>(false);
  BatchTask task = MakeTask(cancelled);
  task.cancelled = flag;
  batcher.Submit(std::move(task));
  flag->store(true);
  EXPECT_EQ(cancelled.Wait().code(), absl::StatusCode::kCancelled);
  runs.Release();
  EXPECT_TRUE(running.Wait().ok());
}

TEST(BatcherTest, RefusesWhatDoesNotFit) {
  BlockingRun runs;
  BatchOptions options = Options(1, absl::ZeroDuration());
  options.max_queue_items = 2;
  Batcher batcher(options, OneThread(), runs.run());
  Answer running, waiting[2], refused;
  batcher.Submit(MakeTask(running));
  runs.WaitUntilStarted();  // Running tasks take up no room.
  for (Answer& answer : waiting) batcher.Submit(MakeTask(answer));
  batcher.Submit(MakeTask(refused));
  EXPECT_EQ(refused.Wait().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Reason(refused.status), "QUEUE_FULL");
  EXPECT_FALSE(batcher.room().Take(1, 0).ok());
  runs.Release();
  EXPECT_TRUE(running.Wait().ok());
  for (Answer& answer : waiting) EXPECT_TRUE(answer.Wait().ok());
  EXPECT_TRUE(batcher.room().Take(2, 0).ok());
}

TEST(BatcherTest, ReservedRoomIsKeptForItsTask) {
  BlockingRun runs;
  runs.Release();
  BatchOptions options = Options(1, absl::ZeroDuration());
  options.max_queue_items = 1;
  Batcher batcher(options, OneThread(), runs.run());
  absl::StatusOr<Reservation> reserved = batcher.room().Take(1, 100);
  ASSERT_TRUE(reserved.ok());
  Answer refused, accepted;
  batcher.Submit(MakeTask(refused));
  EXPECT_EQ(refused.Wait().code(), absl::StatusCode::kResourceExhausted);
  BatchTask task = MakeTask(accepted);
  task.reservation = *std::move(reserved);
  batcher.Submit(std::move(task));
  EXPECT_TRUE(accepted.Wait().ok());
  EXPECT_TRUE(batcher.room().Take(1, 0).ok());
}

// An estimate must not count expired tasks, even if the drop thread has not
// removed them yet.
TEST(BatcherTest, WhatHasExpiredIsNoWorkForAnEstimate) {
  BlockingRun runs;
  FakeClock clock;
  Batcher batcher(Options(1, absl::ZeroDuration()), OneThread(), runs.run(),
                  nullptr, clock.clock());
  Answer running, expired[5];
  BatchTask task = MakeTask(running);
  AdmissionRequest request;
  request.key = task.key;
  batcher.ImportProfile({{task.key, 1, absl::Seconds(1), absl::Seconds(1)}});
  batcher.Submit(std::move(task));
  runs.WaitUntilStarted();
  for (Answer& answer : expired) {
    batcher.Submit(MakeTask(answer, clock.Now() + absl::Seconds(1)));
  }
  clock.Advance(absl::Seconds(1));
  EXPECT_LT(batcher.Estimate(request).start - clock.Now(), absl::Seconds(1));
  for (Answer& answer : expired) {
    EXPECT_EQ(answer.Wait().code(), absl::StatusCode::kDeadlineExceeded);
  }
  runs.Release();
}

TEST(BatcherTest, TheDestructorRunsWhatWaits) {
  BlockingRun runs;
  runs.Release();
  Answer answers[5];
  {
    Batcher batcher(Options(4, kNever), OneThread(), runs.run());
    for (int i = 0; i < 3; ++i) batcher.Submit(MakeTask(answers[i]));
  }
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(answers[i].Wait().ok());
  EXPECT_EQ(runs.triggers(), std::vector<BatchTrigger>({BatchTrigger::kDrain}));
}

TEST(BatcherTest, RefusesWhileStopping) {
  BlockingRun runs;
  BatchOptions options = Options(1, absl::ZeroDuration());
  options.max_queue_items =
      2;  // The queue is soon full, but the reason remains DRAINING.
  auto batcher = std::make_unique<Batcher>(options, OneThread(), runs.run());
  Batcher& alive = *batcher;
  Answer running;
  alive.Submit(MakeTask(running));
  runs.WaitUntilStarted();
  std::thread stopper([&] { batcher.reset(); });
  absl::Status refusal;
  std::vector<std::unique_ptr<Answer>> accepted;
  std::optional<TimeLimit> limit(std::in_place, "the refusal");
  while (refusal.code() != absl::StatusCode::kUnavailable) {
    auto answer = std::make_unique<Answer>();
    alive.Submit(
        MakeTask(*answer));  // The batcher lives while its first batch runs.
    if (answer->done.HasBeenNotified()) {
      refusal = answer->status;
    } else {
      accepted.push_back(std::move(answer));
    }
    std::this_thread::yield();
  }
  limit.reset();
  EXPECT_EQ(Reason(refusal), "DRAINING");
  EXPECT_EQ(server::GetErrorDetail(refusal).retry_after, absl::ZeroDuration());
  runs.Release();
  Join(stopper, "the destructor");
  for (const auto& answer : accepted) EXPECT_TRUE(answer->Wait().ok());
}

// Many threads submit and cancel tasks, some of which expire. Each task must be
// answered exactly once, with a result or an expected error.
class BatcherUnderLoadTest : public testing::TestWithParam<int> {};

TEST_P(BatcherUnderLoadTest, AnswersEveryTaskOnce) {
  constexpr int kThreads = 4, kTasks = 3000;
  const int run_threads = GetParam();
  struct Counts {
    std::atomic<int> ok{0}, expired{0}, cancelled{0}, refused{0}, other{0};
  } counts;
  std::vector<std::atomic<int>> answered(kThreads * kTasks);
  {
    BatchOptions options = Options(4, absl::Microseconds(200));
    options.max_queue_items = 64;
    std::atomic<int> concurrent{0};
    Batcher batcher(options, Threads(run_threads),
                    OnEachThread([&](Batch batch) {
                      EXPECT_LT(concurrent++, run_threads);
                      EXPECT_LE(batch.tasks.size(), 4);
                      for (BatchTask& task : batch.tasks) {
                        EXPECT_EQ(task.key, batch.key);
                      }
                      --concurrent;
                      AnswerAll(std::move(batch));
                    }));
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937 random(t);
        std::vector<std::shared_ptr<std::atomic<bool>>> flags;
        for (int i = 0; i < kTasks; ++i) {
          BatchTask task;
          task.key.height = 2;
          task.key.width = random() % 2 + 1;
          task.image.pixels = std::vector<uint8_t>(12);
          if (random() % 4 == 0) {
            task.deadline =
                base::SteadyNow() + absl::Microseconds(random() % 400);
          }
          flags.push_back(std::make_shared<std::atomic<bool>>(false));
          task.cancelled = flags.back();
          if (random() % 3 == 0) {
            absl::StatusOr<Reservation> room = batcher.room().Take(1, 12);
            if (room.ok()) task.reservation = *std::move(room);
          }
          task.done = [&counts, &count = answered[t * kTasks + i]](
                          absl::StatusOr<model::Result> result,
                          const BatchInfo&) {
            ++count;
            switch (result.status().code()) {
              case absl::StatusCode::kOk:
                ++counts.ok;
                break;
              case absl::StatusCode::kDeadlineExceeded:
                ++counts.expired;
                break;
              case absl::StatusCode::kCancelled:
                ++counts.cancelled;
                break;
              case absl::StatusCode::kResourceExhausted:
                ++counts.refused;
                break;
              default:
                ++counts.other;
            }
          };
          batcher.Submit(std::move(task));
          if (random() % 8 == 0) flags[random() % flags.size()]->store(true);
          if (random() % 16 == 0) std::this_thread::yield();
        }
      });
    }
    for (std::thread& thread : threads) Join(thread, "a submitting thread");
  }
  for (const std::atomic<int>& count : answered) ASSERT_EQ(count, 1);
  EXPECT_EQ(counts.other, 0);
  EXPECT_GT(counts.ok, 0);
  RecordProperty("ok", counts.ok);
  RecordProperty("expired", counts.expired);
  RecordProperty("cancelled", counts.cancelled);
  RecordProperty("refused", counts.refused);
}

INSTANTIATE_TEST_SUITE_P(Threads, BatcherUnderLoadTest, testing::Values(1, 3));

}  // namespace
}  // namespace sfmamba::batching
