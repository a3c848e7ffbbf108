// Tests batchers that share devices.

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "base/steady_clock.h"
#include "gtest/gtest.h"
#include "server/batching/batcher.h"
#include "server/batching/device_turns.h"
#include "tests/server/batching/batch_tasks.h"
#include "tests/testing/patience.h"

namespace sfmamba::batching {
namespace {

using server::Priority;

constexpr absl::Duration kAtOnce = absl::ZeroDuration();
constexpr absl::Duration kCost = absl::Milliseconds(10);

// Stores the batches of several batchers in the order in which they ran.
class Log {
 public:
  Batcher::MakeRun Named(std::string name) {
    return [this, name](int thread) {
      return [this, name, thread](Batch batch) {
        {
          absl::MutexLock lock(&mu_);
          ran_.push_back(name + std::to_string(batch.tasks.size()));
          threads_.push_back(thread);
        }
        AnswerAll(std::move(batch));
        return Batcher::Ran();
      };
    };
  }
  std::vector<std::string> ran() {
    absl::MutexLock lock(&mu_);
    return ran_;
  }
  std::vector<int> threads() {
    absl::MutexLock lock(&mu_);
    return threads_;
  }

 private:
  absl::Mutex mu_;
  std::vector<std::string> ran_ ABSL_GUARDED_BY(mu_);
  std::vector<int> threads_ ABSL_GUARDED_BY(mu_);
};

BatchTask WithPriority(Answer& answer, server::Priority priority) {
  BatchTask task = MakeTask(answer);
  task.priority = priority;
  return task;
}

// The devices of this fixture outlive the batchers that a test declares.
class BatcherDevicesTest : public testing::Test {
 protected:
  // Waits until `count` batches wait for a turn on the device.
  void WaitForWaiting(int count, DeviceTurns& device) {
    WaitUntil([&] { return device.waiting() == count; },
              "batches that wait for the device");
  }

  DeviceTurns device_{1}, other_{1};
  const std::unique_ptr<DeviceTurns::Member> member_ = device_.Join();
  Log log_;
};

TEST_F(BatcherDevicesTest, TheLastAnswerOfAnIdleThreadHoldsNoTurn) {
  absl::Notification answering, go;
  std::vector<bool> idle;
  Batcher batcher(Options(1, kAtOnce), {&device_}, [&](int) {
    return [&](Batch batch) {
      Batcher::Ran ran;
      ran.answer_last =
          [&, done = std::move(batch.tasks[0].done)](bool is_idle) mutable {
            idle.push_back(is_idle);
            answering.Notify();
            WaitFor(go, "the test's leave to answer");
            done(model::Result(), BatchInfo());
          };
      return ran;
    };
  });
  Answer answer;
  batcher.Submit(MakeTask(answer));
  WaitFor(answering, "the last answer");
  EXPECT_TRUE(member_->TryTake().has_value());
  go.Notify();
  EXPECT_TRUE(answer.Wait().ok());
  EXPECT_EQ(idle, std::vector<bool>({true}));
}

TEST_F(BatcherDevicesTest, ABatchIsFormedWhenItsTurnHasCome) {
  Batcher batcher(Options(4, kAtOnce), {&device_}, log_.Named("a"));
  std::optional<DeviceTurns::Turn> busy(
      member_->Take(server::Priority::kNormal, kCost));
  Answer answers[3];
  batcher.Submit(MakeTask(answers[0]));
  WaitForWaiting(1, device_);
  batcher.Submit(MakeTask(answers[1]));
  batcher.Submit(MakeTask(answers[2]));
  EXPECT_TRUE(log_.ran().empty());
  busy.reset();
  for (Answer& answer : answers) EXPECT_TRUE(answer.Wait().ok());
  EXPECT_EQ(log_.ran(), std::vector<std::string>({"a3"}));
}

TEST_F(BatcherDevicesTest, TasksExpireAndAreCancelledWhileTheirModelWaits) {
  Batcher batcher(Options(4, kAtOnce), {&device_}, log_.Named("a"));
  std::optional<DeviceTurns::Turn> busy(
      member_->Take(server::Priority::kNormal, kCost));
  Answer expired, cancelled, kept;
  batcher.Submit(MakeTask(kept));
  WaitForWaiting(1, device_);
  BatchTask task = MakeTask(cancelled);
  task.cancelled = std::make_shared<std::atomic<bool>>(true);
  batcher.Submit(std::move(task));
  batcher.Submit(MakeTask(expired, base::SteadyNow() + absl::Milliseconds(10)));
  EXPECT_TRUE(absl::IsDeadlineExceeded(expired.Wait()));
  EXPECT_TRUE(absl::IsCancelled(cancelled.Wait()));
  busy.reset();
  EXPECT_TRUE(kept.Wait().ok());
  EXPECT_EQ(log_.ran(), std::vector<std::string>({"a1"}));
}

TEST_F(BatcherDevicesTest, ATurnForNothingIsGivenBack) {
  Batcher batcher(Options(4, kAtOnce), {&device_}, log_.Named("a"));
  std::optional<DeviceTurns::Turn> busy(
      member_->Take(server::Priority::kNormal, kCost));
  Answer expired;
  batcher.Submit(MakeTask(expired, base::SteadyNow() + absl::Milliseconds(30)));
  WaitForWaiting(1, device_);
  EXPECT_TRUE(absl::IsDeadlineExceeded(expired.Wait()));
  busy.reset();
  WaitUntil([&] { return member_->TryTake().has_value(); },
            "the device to be free again");
  Answer next;
  batcher.Submit(MakeTask(next));
  EXPECT_TRUE(next.Wait().ok());
  EXPECT_EQ(log_.ran(), std::vector<std::string>({"a1"}));
}

// When the first thread ends its batch, a second batch is due. The first thread
// therefore still holds its turn while it answers. Meanwhile, the other thread
// runs the second batch. No task is then left for the first thread, so it must
// end its turn.
TEST_F(BatcherDevicesTest, AThreadThatWaitsHoldsNoTurn) {
  const auto other_member = other_.Join();
  std::optional<DeviceTurns::Turn> other_busy(
      other_member->Take(server::Priority::kNormal, kCost));
  absl::Notification other_ran;
  Batcher batcher(Options(1, kAtOnce), {&device_, &other_}, [&](int thread) {
    return [&, thread](Batch batch) {
      Batcher::Ran ran;
      ran.answer_last = [&, thread, done = std::move(batch.tasks[0].done)](
                            bool is_idle) mutable {
        EXPECT_EQ(is_idle, thread == 1);
        if (thread == 0) {
          other_busy.reset();
          WaitFor(other_ran, "the other thread's batch");
        } else {
          other_ran.Notify();
        }
        done(model::Result(), BatchInfo());
      };
      return ran;
    };
  });
  std::optional<DeviceTurns::Turn> busy(
      member_->Take(server::Priority::kNormal, kCost));
  Answer answers[2];
  for (Answer& answer : answers) batcher.Submit(MakeTask(answer));
  WaitForWaiting(1, device_);
  WaitForWaiting(1, other_);
  busy.reset();
  for (Answer& answer : answers) EXPECT_TRUE(answer.Wait().ok());
  WaitUntil([&] { return member_->TryTake().has_value(); },
            "the end of the first thread's turn");
}

// The turn for the second task follows the first turn without a gap. The second
// task is then dropped, and its turn ends unused.
TEST_F(BatcherDevicesTest, ATurnEndsOnceThoughTheNextBatchIsDropped) {
  FakeClock clock;
  absl::Notification all;
  bool shared = true;
  Batcher batcher(Options(1, kAtOnce), {&device_},
                  OnEachThread([&](Batch batch) {
                    WaitFor(all, "all tasks");
                    clock.Advance(absl::Milliseconds(200));
                    shared = member_->TryTake().has_value();
                    AnswerAll(std::move(batch));
                  }),
                  nullptr, clock.clock());
  Answer first, late, last;
  BatchTask task = MakeTask(late);
  task.finish_by = clock.Now() + absl::Milliseconds(300);
  batcher.Submit(MakeTask(first));
  WaitUntil([&] { return batcher.RunningSince() != absl::InfiniteFuture(); },
            "the first batch");
  batcher.Submit(std::move(task));
  all.Notify();
  EXPECT_TRUE(first.Wait().ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(late.Wait()));
  batcher.Submit(MakeTask(last));
  EXPECT_TRUE(last.Wait().ok());
  EXPECT_FALSE(shared) << "a batch has the device alone";
}

// The model "lengthy" has just used the device for a second. It gets no turn
// between the short batches of the other model.
TEST_F(BatcherDevicesTest, ShortBatchesRunOneAfterAnother) {
  absl::Time now = absl::UnixEpoch();
  DeviceTurns device(1, [&now] { return now; });
  const auto lengthy = device.Join();
  Batcher batcher(Options(1, kAtOnce), {&device}, log_.Named("a"));
  std::optional<DeviceTurns::Turn> busy(
      lengthy->Take(server::Priority::kNormal, kCost));
  Answer answers[3];
  for (Answer& answer : answers) batcher.Submit(MakeTask(answer));
  WaitForWaiting(1, device);
  size_t ran_before = 0;
  std::thread next([&] {
    const DeviceTurns::Turn turn =
        lengthy->Take(server::Priority::kNormal, kCost);
    ran_before = log_.ran().size();
  });
  WaitForWaiting(2, device);
  now += absl::Seconds(1);
  busy.reset();
  Join(next, "the next turn");
  EXPECT_EQ(ran_before, 3);
  for (Answer& answer : answers) EXPECT_TRUE(answer.Wait().ok());
}

TEST_F(BatcherDevicesTest, AnUrgentTaskBringsItsModelForward) {
  Batcher a(Options(1, kAtOnce), {&device_}, log_.Named("a"));
  Batcher b(Options(1, kAtOnce), {&device_}, log_.Named("b"));
  std::optional<DeviceTurns::Turn> busy(
      member_->Take(server::Priority::kNormal, kCost));
  Answer first, second, urgent;
  a.Submit(MakeTask(first));
  WaitForWaiting(1, device_);
  b.Submit(WithPriority(second, server::Priority::kLow));
  WaitForWaiting(2, device_);
  b.Submit(WithPriority(urgent, server::Priority::kHigh));
  busy.reset();
  for (Answer* answer : {&first, &second, &urgent}) {
    EXPECT_TRUE(answer->Wait().ok());
  }
  const std::vector<std::string> ran = log_.ran();
  ASSERT_EQ(ran.size(), 3);
  EXPECT_EQ(ran[0], "b1");
}

TEST_F(BatcherDevicesTest, AModelWaitsWithThePriorityOfItsTasks) {
  Batcher a(Options(1, kAtOnce), {&device_}, log_.Named("a"));
  Batcher b(Options(1, kAtOnce), {&device_}, log_.Named("b"));
  std::optional<DeviceTurns::Turn> busy(
      member_->Take(server::Priority::kHigh, kCost));
  Answer low, normal;
  a.Submit(WithPriority(low, server::Priority::kLow));
  WaitForWaiting(1, device_);
  b.Submit(MakeTask(normal));
  WaitForWaiting(2, device_);
  busy.reset();
  for (Answer* answer : {&low, &normal}) EXPECT_TRUE(answer->Wait().ok());
  EXPECT_EQ(log_.ran(), std::vector<std::string>({"b1", "a1"}));
}

TEST_F(BatcherDevicesTest, OfTwoVersionsTheOneWithTheMoreUrgentTaskGoesFirst) {
  BatchOptions options = Options(1, kAtOnce);
  options.model = "m";
  Batcher old(options, {&device_}, log_.Named("o"));
  Batcher next(options, {&device_}, log_.Named("n"));
  std::optional<DeviceTurns::Turn> busy(
      member_->Take(server::Priority::kNormal, kCost));
  Answer late, early;
  const absl::Time now = base::SteadyNow();
  old.Submit(MakeTask(late, now + 2 * kNever));
  WaitForWaiting(1, device_);
  next.Submit(MakeTask(early, now + kNever));
  WaitForWaiting(2, device_);
  busy.reset();
  for (Answer* answer : {&late, &early}) EXPECT_TRUE(answer->Wait().ok());
  EXPECT_EQ(log_.ran(), std::vector<std::string>({"n1", "o1"}));
}

TEST_F(BatcherDevicesTest, WhatIsLeftOfAVersionGoesBeforeTheNextOnes) {
  BatchOptions options = Options(1, kAtOnce);
  options.model = "m";
  Batcher old(options, {&device_}, log_.Named("o"));
  Batcher next(options, {&device_}, log_.Named("n"));
  std::optional<DeviceTurns::Turn> busy(
      member_->Take(server::Priority::kNormal, kCost));
  Answer first, second, third;
  const absl::Time deadline = base::SteadyNow() + kNever;
  old.Submit(MakeTask(first, deadline));
  WaitForWaiting(1, device_);
  old.Submit(MakeTask(second, deadline));
  next.Submit(MakeTask(third, deadline + absl::Seconds(1)));
  WaitForWaiting(2, device_);
  busy.reset();
  for (Answer* answer : {&first, &second, &third}) {
    EXPECT_TRUE(answer->Wait().ok());
  }
  EXPECT_EQ(log_.ran(), std::vector<std::string>({"o1", "o1", "n1"}));
}

TEST_F(BatcherDevicesTest, AFloodedModelLeavesTurnsToAnother) {
  absl::Notification started, go;
  Batcher flooded(Options(1, kAtOnce), {&device_}, [&](int thread) {
    return [&, run = log_.Named("f")(thread)](Batch batch) mutable {
      if (!started.HasBeenNotified()) started.Notify();
      WaitFor(go, "the test's leave to end a batch", kTestPatience);
      return run(std::move(batch));
    };
  });
  Batcher other(Options(1, kAtOnce), {&device_}, log_.Named("o"));
  std::vector<Answer> answers(20);
  Answer last;
  for (Answer& answer : answers) flooded.Submit(MakeTask(answer));
  WaitFor(started, "the first batch");
  other.Submit(MakeTask(last));
  WaitForWaiting(1, device_);
  go.Notify();
  EXPECT_TRUE(last.Wait().ok());
  for (Answer& answer : answers) EXPECT_TRUE(answer.Wait().ok());
  EXPECT_EQ(log_.ran()[1], "o1") << "after the batch that ran";
}

TEST_F(BatcherDevicesTest, ABatchGoesToTheDeviceThatIsFree) {
  Batcher batcher(Options(1, kAtOnce), {&device_, &other_}, log_.Named("a"));
  std::optional<DeviceTurns::Turn> busy(
      member_->Take(server::Priority::kNormal, kCost));
  for (int i = 0; i < 4; ++i) {
    Answer answer;
    batcher.Submit(MakeTask(answer));
    EXPECT_TRUE(answer.Wait().ok());
  }
  EXPECT_EQ(log_.threads(), std::vector<int>(4, 1));
}

TEST_F(BatcherDevicesTest, TheDestructorRunsWhatWaitsForATurn) {
  Answer answers[3];
  std::thread freed;
  {
    Batcher batcher(Options(1, kAtOnce), {&device_, &device_}, log_.Named("a"));
    std::optional<DeviceTurns::Turn> busy(
        member_->Take(server::Priority::kNormal, kCost));
    for (Answer& answer : answers) batcher.Submit(MakeTask(answer));
    WaitForWaiting(2, device_);
    freed = std::thread([turn = *std::move(busy)] {});
  }
  Join(freed, "the turn's end");
  for (Answer& answer : answers) EXPECT_TRUE(answer.Wait().ok());
  EXPECT_EQ(log_.ran(), std::vector<std::string>(3, "a1"));
}

}  // namespace
}  // namespace sfmamba::batching
