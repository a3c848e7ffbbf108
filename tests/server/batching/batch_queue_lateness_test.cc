// Tests how a BatchQueue handles tasks that would end after their deadlines.

#include <optional>
#include <random>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "server/batching/batch_queue.h"
#include "tests/server/batching/numbered_tasks.h"

namespace sfmamba::batching {
namespace {

using Numbers = std::vector<int>;

// Makes a task that must have ended by `finish_by`.
BatchTask MakeTaskToFinish(int id, absl::Time finish_by) {
  BatchTask task = MakeTask(id, finish_by);
  task.finish_by = finish_by;
  return task;
}

TEST(BatchQueueLatenessTest, GivesBackWhatCannotEndInTime) {
  BatchQueue queue(Options(2, 0));
  Teach(&queue, 1, 60);
  Teach(&queue, 2, 100);
  queue.Push(MakeTaskToFinish(1, At(50)), At(0));
  queue.Push(MakeTaskToFinish(2, At(70)), At(0));
  queue.Push(MakeTaskToFinish(3, At(150)), At(0));
  queue.Push(MakeTaskToFinish(4, At(160)), At(0));
  const std::optional<Batch> batch = queue.PopBatch(At(0));
  EXPECT_EQ(Ids(batch), Numbers({3, 4}));
  EXPECT_EQ(Ids(batch->dropped), Numbers({1, 2}));
  EXPECT_EQ(queue.size(), 0);
  EXPECT_EQ(AllWaiting(queue).bytes, 0);
}

TEST(BatchQueueLatenessTest,
     ASmallerBatchIsRunForTheUrgentIfOthersNeedNotWaitForIt) {
  BatchQueue queue(Options(4, 0));
  Teach(&queue, 1, 40);
  Teach(&queue, 3, 100);
  for (int id : {1, 2, 3}) {
    queue.Push(MakeTaskToFinish(id, At(id == 1 ? 50 : 500)), At(0));
  }
  const std::optional<Batch> batch = queue.PopBatch(At(0));
  EXPECT_EQ(Ids(batch), Numbers({1}));
  EXPECT_TRUE(batch->dropped.empty());
  EXPECT_EQ(Ids(queue.PopBatch(At(40))), Numbers({2, 3}));
}

TEST(BatchQueueLatenessTest, ABatchThatEndsAtADeadlineIsInTime) {
  BatchQueue queue(Options(4, 0));
  const absl::Duration one = absl::Milliseconds(40), three = 2 * one;
  queue.profile().Import({{Key(), 1, one, one}, {Key(), 3, three, three}},
                         At(0));
  for (int id : {1, 2, 3}) {
    queue.Push(MakeTaskToFinish(id, At(id == 1 ? 40 : 500)), At(0));
  }
  EXPECT_EQ(Ids(queue.PopBatch(At(0))), Numbers({1})) << "the smaller batch";
  queue.Push(MakeTaskToFinish(4, At(120)), At(40));
  const std::optional<Batch> batch = queue.PopBatch(At(40));
  EXPECT_EQ(Ids(batch), Numbers({4, 2, 3}));
  EXPECT_TRUE(batch->dropped.empty());
}

TEST(BatchQueueLatenessTest, ABatchMayConsistOfLateTasksAlone) {
  BatchQueue queue(Options(4, 0));
  Teach(&queue, 1, 60);
  queue.Push(MakeTaskToFinish(1, At(50)), At(0));
  const std::optional<Batch> batch = queue.PopBatch(At(0));
  ASSERT_TRUE(batch.has_value());
  EXPECT_TRUE(batch->tasks.empty());
  EXPECT_EQ(Ids(batch->dropped), Numbers({1}));
}

TEST(BatchQueueLatenessTest, NothingIsLateWhereNothingIsKnown) {
  BatchQueue queue(Options(4, 0));
  queue.Push(MakeTaskToFinish(1, At(1)), At(0));
  EXPECT_EQ(Ids(queue.PopBatch(At(0))), Numbers({1}));
  // The queue drops late tasks only if its estimates are fresh. Five seconds
  // later, the estimate of 60 ms is too old, so task 2 is not dropped.
  Teach(&queue, 1, 60);
  queue.Push(MakeTaskToFinish(2, At(5001)), At(5000));
  EXPECT_EQ(Ids(queue.PopBatch(At(5000))), Numbers({2}));
}

TEST(BatchQueueLatenessTest, IsDueBeforeItsMostUrgentTaskBecomesLate) {
  BatchQueue queue(Options(8, 20));
  queue.Push(MakeTaskToFinish(1, At(10)), At(0));
  EXPECT_EQ(queue.Due(At(0)), At(9));
  Teach(&queue, 1, 6);
  EXPECT_GT(queue.Due(At(0)), At(2));
  EXPECT_LT(queue.Due(At(0)), At(4));
  EXPECT_EQ(Ids(queue.PopBatch(At(3))), Numbers({1}));
}

// The load is twice the capacity. The queue must drop tasks early, so that the
// device computes only tasks that end in time. Without estimates, all tasks
// would end too late.
TEST(BatchQueueLatenessTest, GoodputHoldsAtTwiceTheCapacity) {
  constexpr int kBatch = 8, kBatchMilliseconds = 400, kDeadline = 1000;
  BatchQueue queue(Options(kBatch, 2));
  std::mt19937 random(7);
  std::exponential_distribution<double> gap(2.0 * kBatch / kBatchMilliseconds);
  std::uniform_real_distribution<double> noise(0.95, 1.1);
  double next_arrival = 0;
  int now = 0, in_time = 0, too_late = 0, id = 0;
  while (now < 60'000) {
    for (; next_arrival <= now; next_arrival += gap(random)) {
      const int at = static_cast<int>(next_arrival);
      queue.Push(MakeTaskToFinish(++id, At(at + kDeadline)), At(at));
    }
    const std::optional<Batch> batch = queue.PopBatch(At(now));
    if (!batch.has_value() || batch->tasks.empty()) {
      ++now;
      continue;
    }
    const int images = static_cast<int>(batch->tasks.size());
    const int took = images * kBatchMilliseconds / kBatch * noise(random);
    now += took;
    queue.Ran(batch->number, At(now));
    for (const BatchTask& task : batch->tasks) {
      ++(At(now) <= task.finish_by ? in_time : too_late);
    }
  }
  const int capacity = 60'000 / kBatchMilliseconds * kBatch;
  EXPECT_GT(in_time, 0.9 * capacity);
  EXPECT_LT(too_late, 0.05 * in_time);
}

// One caller sends half of the load with deadlines of 45 ms, which only a small
// batch can meet. Nearly all images of the other caller must end in time.
TEST(BatchQueueLatenessTest, ShortDeadlinesDoNotMakeOthersLate) {
  constexpr int kEnd = 60'000, kShort = 45, kLong = 2000;
  const auto duration = [](int images) { return 30 + 5 * images; };
  BatchQueue queue(Options(8, 2));
  std::mt19937 random(11);
  // 120 images per second arrive. With full batches, the device computes 114
  // images per second.
  std::exponential_distribution<double> gap(0.12);
  double next_arrival = 0;
  int now = 0, id = 0, patient = 0, patient_in_time = 0;
  while (now < kEnd) {
    for (; next_arrival <= now; next_arrival += gap(random)) {
      const int at = static_cast<int>(next_arrival);
      const bool is_patient = ++id % 2 == 0;
      if (is_patient && at < kEnd - kLong) ++patient;
      queue.Push(MakeTaskToFinish(id, At(at + (is_patient ? kLong : kShort))),
                 At(at));
    }
    const std::optional<Batch> batch = queue.PopBatch(At(now));
    if (!batch.has_value() || batch->tasks.empty()) {
      ++now;
      continue;
    }
    const int took = duration(batch->tasks.size());
    now += took;
    queue.Ran(batch->number, At(now));
    for (const BatchTask& task : batch->tasks) {
      if (Id(task) % 2 == 0 && At(now) <= task.finish_by &&
          task.submitted < At(kEnd - kLong)) {
        ++patient_in_time;
      }
    }
  }
  EXPECT_GT(patient, 3000);
  EXPECT_GE(patient_in_time, 0.99 * patient);
}

// Uses random loads and durations. Each task must leave the queue exactly once,
// either in a batch or because it is dropped.
class BatchQueueLatenessPropertyTest : public ::testing::TestWithParam<int> {};

TEST_P(BatchQueueLatenessPropertyTest, EachTaskLeavesOnce) {
  std::mt19937 random(GetParam());
  const auto pick = [&random](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  BatchQueue queue(Options(pick(1, 6), pick(0, 8)));
  std::set<int> waiting;
  int now = 0, id = 0, late = 0;
  const auto leave = [&waiting](const std::vector<BatchTask>& tasks) {
    for (const BatchTask& task : tasks) {
      EXPECT_EQ(waiting.erase(Id(task)), 1) << "task " << Id(task);
    }
  };
  for (int step = 0; step < 3000; ++step) {
    now += pick(0, 3);
    for (int i = pick(0, 2); i > 0; --i) {
      waiting.insert(++id);
      queue.Push(MakeTaskToFinish(id, At(now + pick(1, 120))), At(now));
    }
    const std::optional<Batch> batch = queue.PopBatch(At(now));
    if (!batch.has_value()) continue;
    leave(batch->tasks);
    leave(batch->dropped);
    late += batch->dropped.size();
    EXPECT_FALSE(batch->tasks.empty() && batch->dropped.empty());
    if (batch->tasks.empty()) continue;
    const int took = pick(5, 40);
    now += took;
    queue.Ran(batch->number, At(now));
  }
  EXPECT_EQ(queue.size(), waiting.size());
  EXPECT_GT(late, 0);
}

INSTANTIATE_TEST_SUITE_P(Traces, BatchQueueLatenessPropertyTest,
                         ::testing::Range(0, 20));

}  // namespace
}  // namespace sfmamba::batching
