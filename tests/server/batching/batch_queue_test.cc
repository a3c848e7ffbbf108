#include "server/batching/batch_queue.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/batching/reservation.h"
#include "tests/server/batching/numbered_tasks.h"

namespace sfmamba::batching {
namespace {

using Numbers = std::vector<int>;

TEST(BatchQueueTest, IsNeverDueWhileEmpty) {
  BatchQueue queue(Options(4, 5));
  EXPECT_EQ(queue.Due(At(0)), absl::InfiniteFuture());
  EXPECT_EQ(queue.NextDeadline(), absl::InfiniteFuture());
  EXPECT_EQ(AllWaiting(queue).oldest, absl::InfiniteFuture());
  EXPECT_FALSE(queue.PopBatch(At(1000)).has_value());
}

TEST(BatchQueueTest, IsDueOnceTheOldestTaskHasWaitedMaxDelay) {
  BatchQueue queue(Options(4, 5));
  queue.Push(MakeTask(1), At(0));
  queue.Push(MakeTask(2), At(3));
  EXPECT_EQ(queue.Due(At(0)), At(5));
  EXPECT_FALSE(queue.PopBatch(At(4)).has_value());
  EXPECT_EQ(queue.Due(At(5)), absl::InfinitePast());

  const std::optional<Batch> batch = queue.PopBatch(At(5));
  EXPECT_EQ(Ids(batch), Numbers({1, 2}));
  EXPECT_EQ(batch->trigger, BatchTrigger::kDelay);
}

TEST(BatchQueueTest, IsDueAtOnceWhenABatchIsFull) {
  BatchQueue queue(Options(2, 5));
  for (int id : {1, 2, 3}) queue.Push(MakeTask(id), At(0));
  EXPECT_EQ(queue.Due(At(0)), absl::InfinitePast());

  const std::optional<Batch> batch = queue.PopBatch(At(0));
  EXPECT_EQ(Ids(batch), Numbers({1, 2}));
  EXPECT_EQ(batch->trigger, BatchTrigger::kFull);
  EXPECT_EQ(queue.Due(At(0)), At(5)) << "the third waits for mates";
}

TEST(BatchQueueTest, WithoutDelayOneTaskIsABatch) {
  BatchQueue queue(Options(8, 0));
  queue.Push(MakeTask(1), At(0));
  EXPECT_EQ(Ids(queue.PopBatch(At(0))), Numbers({1}));
}

TEST(BatchQueueTest, DrainingMakesEverythingDue) {
  BatchQueue queue(Options(2, 1000));
  for (int id : {1, 2, 3}) queue.Push(MakeTask(id), At(0));
  queue.Drain();
  EXPECT_EQ(queue.PopBatch(At(0))->trigger, BatchTrigger::kFull);
  EXPECT_EQ(queue.PopBatch(At(0))->trigger, BatchTrigger::kDrain);
  EXPECT_EQ(queue.size(), 0);
}

TEST(BatchQueueTest, TheMostUrgentTasksLeaveFirst) {
  BatchQueue queue(Options(2, 0));
  queue.Push(MakeTask(1, At(300)), At(0));
  queue.Push(MakeTask(2, At(100)), At(0));
  queue.Push(MakeTask(3, At(200)), At(0));
  EXPECT_EQ(Ids(queue.PopBatch(At(0))), Numbers({2, 3}));
  EXPECT_EQ(Ids(queue.PopBatch(At(0))), Numbers({1}));
}

TEST(BatchQueueTest, EqualDeadlinesLeaveInOrderOfArrival) {
  BatchQueue queue(Options(3, 0));
  for (int id : {1, 2, 3}) queue.Push(MakeTask(id, At(100)), At(0));
  EXPECT_EQ(Ids(queue.PopBatch(At(0))), Numbers({1, 2, 3}));
}

TEST(BatchQueueTest, ATaskWithoutDeadlineNeverExpires) {
  BatchQueue queue(Options(1, 0));
  queue.Push(MakeTask(1), At(0));
  EXPECT_TRUE(queue.TakeDropped(At(100000)).empty());
}

TEST(BatchQueueTest, SizesNeverMix) {
  BatchQueue queue(Options(4, 5));
  queue.Push(MakeTask(1, absl::InfiniteFuture(), 224), At(0));
  queue.Push(MakeTask(2, absl::InfiniteFuture(), 256), At(1));
  queue.Push(MakeTask(3, absl::InfiniteFuture(), 224), At(2));
  EXPECT_EQ(Ids(queue.PopBatch(At(10))), Numbers({1, 3}));
  EXPECT_EQ(Ids(queue.PopBatch(At(10))), Numbers({2}));
}

TEST(BatchQueueTest, SizesMixIfTheirBucketIsTheSame) {
  BatchQueue queue(Options(2, 5));
  for (int id : {1, 2}) {
    BatchTask task = MakeTask(id);
    task.image.height = 200 + id;  // The height before padding.
    queue.Push(std::move(task), At(0));
  }
  EXPECT_EQ(Ids(queue.PopBatch(At(0))), Numbers({1, 2}));
}

TEST(BatchQueueTest, HeightAndWidthAreNotExchangeable) {
  BatchQueue queue(Options(4, 0));
  BatchTask tall = MakeTask(1), wide = MakeTask(2);
  tall.key.height = 300;
  wide.key.width = 300;
  queue.Push(std::move(tall), At(0));
  queue.Push(std::move(wide), At(0));
  EXPECT_EQ(queue.PopBatch(At(0))->tasks.size(), 1);
}

TEST(BatchQueueTest, DropsWhatExpired) {
  BatchQueue queue(Options(4, 50));
  queue.Push(MakeTask(1, At(10)), At(0));
  queue.Push(MakeTask(2, At(20)), At(0));
  EXPECT_EQ(queue.NextDeadline(), At(10));
  EXPECT_TRUE(queue.TakeDropped(At(9)).empty());
  EXPECT_EQ(Ids(queue.TakeDropped(At(10))), Numbers({1}));
  EXPECT_EQ(queue.NextDeadline(), At(20));
  EXPECT_EQ(queue.size(), 1);
}

TEST(BatchQueueTest, DropsWhatIsCancelled) {
  BatchQueue queue(Options(4, 50));
  const auto cancelled = std::make_shared<std::atomic<bool>>(false);
  BatchTask task = MakeTask(1);
  task.cancelled = cancelled;
  queue.Push(std::move(task), At(0));
  queue.Push(MakeTask(2), At(0));
  EXPECT_TRUE(queue.TakeDropped(At(1)).empty());
  cancelled->store(true);
  EXPECT_EQ(Ids(queue.TakeDropped(At(1) + kCancelPeriod)), Numbers({1}));
  EXPECT_EQ(queue.size(), 1);
}

TEST(BatchQueueTest, WhatIsCancelledNeverRuns) {
  BatchQueue queue(Options(2, 0));
  BatchTask task = MakeTask(1);
  task.cancelled = std::make_shared<std::atomic<bool>>(true);
  queue.Push(std::move(task), At(0));
  queue.Push(MakeTask(2), At(0));
  queue.Push(MakeTask(3), At(0));
  const std::optional<Batch> batch = queue.PopBatch(At(0));
  EXPECT_EQ(Ids(batch), Numbers({2, 3}));
  EXPECT_EQ(Ids(batch->dropped), Numbers({1}));
}

TEST(BatchQueueTest, WhatIsCancelledBetweenLooksIsDroppedFromItsBatch) {
  BatchQueue queue(Options(2, 0));
  queue.TakeDropped(At(0));
  queue.Push(MakeTask(1), At(1));
  BatchTask task = MakeTask(2);
  task.cancelled = std::make_shared<std::atomic<bool>>(true);
  queue.Push(std::move(task), At(1));
  const std::optional<Batch> batch = queue.PopBatch(At(1));
  EXPECT_EQ(Ids(batch), Numbers({1}));
  EXPECT_EQ(Ids(batch->dropped), Numbers({2}));
}

TEST(BatchQueueTest, PopBatchDropsWhatExpiredThoughNoBatchIsDue) {
  BatchQueue queue(Options(4, 50));
  queue.Push(MakeTask(1, At(10)), At(0));
  queue.Push(MakeTask(2, At(40)), At(0));
  const std::optional<Batch> batch = queue.PopBatch(At(10));
  ASSERT_TRUE(batch.has_value());
  EXPECT_TRUE(batch->tasks.empty());
  EXPECT_EQ(Ids(batch->dropped), Numbers({1}));
  EXPECT_FALSE(queue.PopBatch(At(11)).has_value());
  EXPECT_EQ(queue.size(), 1);
}

TEST(BatchQueueTest, ABatchEndsOnce) {
  BatchQueue queue(Options(1, 0));
  queue.Push(MakeTask(1), At(0));
  const uint64_t number = queue.PopBatch(At(0))->number;
  EXPECT_EQ(queue.Ran(number + 1, At(5)).measured, absl::ZeroDuration());
  EXPECT_EQ(queue.Ran(number, At(7)).measured, absl::Milliseconds(7));
  EXPECT_EQ(queue.Ran(number, At(9)).measured, absl::ZeroDuration());
  EXPECT_EQ(queue.profile().Curve(Key()).Median(1), absl::Milliseconds(7));
}

TEST(BatchQueueTest, DroppingTheOldestMovesTheDueTime) {
  BatchQueue queue(Options(4, 50));
  queue.Push(MakeTask(1, At(10)), At(0));
  queue.Push(MakeTask(2), At(5));
  queue.TakeDropped(At(10));
  EXPECT_EQ(queue.Due(At(0)), At(55));
  EXPECT_EQ(AllWaiting(queue).oldest, At(5));
}

TEST(BatchQueueTest, CountsItemsAndBytes) {
  BatchQueue queue(Options(2, 0));
  BatchTask task = MakeTask(1);
  task.image.values.resize(100);
  queue.Push(std::move(task), At(0));
  queue.Push(MakeTask(2), At(1));
  EXPECT_EQ(queue.size(), 2);
  EXPECT_EQ(AllWaiting(queue).bytes, 404);
  EXPECT_EQ(AllWaiting(queue).oldest, At(0));
  queue.PopBatch(At(2));
  EXPECT_EQ(queue.size(), 0);
  EXPECT_EQ(AllWaiting(queue).bytes, 0);
}

TEST(BatchQueueTest, PushStampsTheArrival) {
  BatchQueue queue(Options(1, 0));
  queue.Push(MakeTask(1), At(7));
  EXPECT_EQ(queue.PopBatch(At(9))->tasks[0].submitted, At(7));
}

TEST(BatchQueueTest, TypesNeverMix) {
  BatchQueue queue(Options(4, 0));
  BatchTask pixels = MakeTask(1), values = MakeTask(2);
  pixels.key.type = ImageType::kUint8;
  values.key.type = ImageType::kFloat32;
  queue.Push(std::move(pixels), At(0));
  queue.Push(std::move(values), At(0));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(queue.PopBatch(At(0))->tasks.size(), 1);
  }
}

TEST(BatchQueueTest, TheMostUrgentOfAllSizesLeavesFirst) {
  BatchQueue queue(Options(1, 0));
  for (int id = 1; id <= 60; ++id) {
    queue.Push(MakeTask(id, At(30'000), 100 + id), At(0));
  }
  queue.Push(MakeTask(61, At(200), 300), At(0));
  EXPECT_EQ(Ids(queue.PopBatch(At(0))), Numbers({61}));
}

// Urgent tasks without a client name arrive again and again. The queue treats
// them as the tasks of one client. The only task of the client "patient" must
// still run soon.
TEST(BatchQueueTest, UrgentTasksDoNotStarveThoseOfAnotherClient) {
  QueueRoom room({1000, 1000});
  BatchQueue queue(Options(2, 0));
  Teach(&queue, 2, 10);
  Teach(&queue, 2, 10, 256);
  BatchTask patient = MakeTask(-1, At(30'000), 256);
  patient.reservation = *room.Take(1, 0, "patient");
  queue.Push(std::move(patient), At(0));
  int left_at = -1;
  for (int now = 0; left_at < 0 && now < 5000; now += 10) {
    queue.Push(MakeTask(1, At(now + 100)), At(now));
    queue.Push(MakeTask(2, At(now + 100)), At(now));
    if (Ids(queue.PopBatch(At(now))) == Numbers({-1})) left_at = now;
  }
  EXPECT_GT(left_at, 0);
  EXPECT_LE(left_at, (2 + 2) * 10);
}

// Uses random arrivals, deadlines, cancellations and batch durations. After
// each step, the queue is compared with a plain list of the waiting tasks.
class BatchQueuePropertyTest : public ::testing::TestWithParam<int> {
 protected:
  struct Waiting {
    int side;
    absl::Time arrival;
    absl::Time deadline;
    std::shared_ptr<std::atomic<bool>> cancelled;
  };

  int Random(int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random_);
  }

  void PushRandom(BatchQueue& queue) {
    Waiting waiting;
    waiting.side = sides_[Random(0, sides_.size() - 1)];
    waiting.arrival = now_;
    waiting.deadline = Random(0, 3) == 0
                           ? absl::InfiniteFuture()
                           : now_ + absl::Milliseconds(Random(-1, 60));
    waiting.cancelled = std::make_shared<std::atomic<bool>>(false);
    BatchTask task = MakeTask(++pushed_, waiting.deadline, waiting.side);
    task.cancelled = waiting.cancelled;
    waiting_.emplace(pushed_, waiting);
    queue.Push(std::move(task), now_);
  }

  bool MustDrop(const Waiting& waiting) const {
    return waiting.deadline <= now_ || waiting.cancelled->load();
  }

  void CheckDropped(const std::vector<BatchTask>& dropped) {
    for (const BatchTask& task : dropped) {
      const auto it = waiting_.find(Id(task));
      ASSERT_NE(it, waiting_.end()) << "task " << Id(task) << " came twice";
      EXPECT_TRUE(MustDrop(it->second)) << "task " << Id(task);
      waiting_.erase(it);
    }
    for (const auto& [id, waiting] : waiting_) {
      EXPECT_GT(waiting.deadline, now_) << "task " << id << " was kept";
    }
  }

  // Returns the image sizes for which a batch must be due. Images are square,
  // so a size is the side length in pixels.
  std::set<int> DueSides(bool draining) const {
    struct Bucket {
      int count = 0;
      absl::Time oldest = absl::InfiniteFuture();
      const Waiting* first = nullptr;  // The most urgent task.
    };
    std::map<int, Bucket> buckets;
    for (const auto& [id, waiting] : waiting_) {
      Bucket& bucket = buckets[waiting.side];
      ++bucket.count;
      bucket.oldest = std::min(bucket.oldest, waiting.arrival);
      if (bucket.first == nullptr ||
          waiting.deadline < bucket.first->deadline) {
        bucket.first = &waiting;
      }
    }
    std::set<int> due;
    for (const auto& [side, bucket] : buckets) {
      if (draining || bucket.count >= options_.max_batch_size ||
          bucket.oldest + options_.max_queue_delay <= now_ ||
          bucket.first->deadline - absl::Milliseconds(1) <= now_) {
        due.insert(side);
      }
    }
    return due;
  }

  void CheckBatch(const std::optional<Batch>& batch, bool draining) {
    const std::set<int> due = DueSides(draining);
    ASSERT_EQ(batch.has_value(), !due.empty()) << "work conservation";
    if (!batch.has_value()) return;
    for (const BatchTask& task : batch->dropped) {
      ASSERT_TRUE(waiting_.at(Id(task)).cancelled->load());
      waiting_.erase(Id(task));
    }
    ASSERT_LE(batch->tasks.size(), options_.max_batch_size);
    if (batch->tasks.empty()) {
      ASSERT_FALSE(batch->dropped.empty());
      return;
    }

    const int side = batch->key.width;
    EXPECT_TRUE(due.count(side) == 1);
    absl::Time first = absl::InfiniteFuture();
    absl::Time latest = absl::InfinitePast();
    for (const BatchTask& task : batch->tasks) {
      const auto it = waiting_.find(Id(task));
      ASSERT_NE(it, waiting_.end()) << "task " << Id(task) << " came twice";
      EXPECT_FALSE(it->second.cancelled->load());
      first = std::min(first, it->second.deadline);
      EXPECT_EQ(it->second.side, side);
      EXPECT_LE(latest, it->second.deadline);
      latest = std::max(latest, it->second.deadline);
      waiting_.erase(it);
    }
    int left = 0;
    for (const auto& [id, waiting] : waiting_) {
      if (waiting.side != side) {
        if (due.count(waiting.side) == 1 && batch->dropped.empty()) {
          EXPECT_GE(waiting.deadline, first)
              << "task " << id << " was more urgent";
        }
        continue;
      }
      ++left;
      EXPECT_GE(waiting.deadline, latest)
          << "task " << id << " was more urgent";
    }
    if (left > 0) {
      EXPECT_EQ(batch->tasks.size(), options_.max_batch_size);
    }
  }

  void CheckCounts(const BatchQueue& queue) {
    ASSERT_EQ(queue.size(), waiting_.size());
    ASSERT_EQ(AllWaiting(queue).bytes, 4 * waiting_.size());
    absl::Time oldest = absl::InfiniteFuture(), next = absl::InfiniteFuture();
    for (const auto& [id, waiting] : waiting_) {
      oldest = std::min(oldest, waiting.arrival);
      next = std::min(next, waiting.deadline);
    }
    EXPECT_EQ(AllWaiting(queue).oldest, oldest);
    EXPECT_EQ(queue.NextDeadline(), next);
  }

  const std::vector<int> sides_ = {64, 96, 128};
  std::mt19937 random_{static_cast<uint32_t>(GetParam())};
  BatchOptions options_ = Options(Random(1, 6), Random(0, 8));
  absl::Time now_ = kStart;
  int pushed_ = 0;
  std::map<int, Waiting> waiting_;
};

TEST_P(BatchQueuePropertyTest, KeepsItsPromises) {
  BatchQueue queue(options_);
  absl::Time free_at = kStart;
  for (int step = 0; step < 1500; ++step) {
    now_ += absl::Milliseconds(Random(0, 2));
    for (int i = Random(0, 3); i > 0; --i) PushRandom(queue);
    if (!waiting_.empty() && Random(0, 4) == 0) {
      std::next(waiting_.begin(), Random(0, waiting_.size() - 1))
          ->second.cancelled->store(true);
    }
    if (Random(0, 2) == 0 || free_at <= now_) {
      CheckDropped(queue.TakeDropped(now_));
    }
    if (free_at <= now_) {
      const std::optional<Batch> batch = queue.PopBatch(now_);
      CheckBatch(batch, false);
      if (batch.has_value()) free_at = now_ + absl::Milliseconds(Random(0, 9));
    }
    CheckCounts(queue);
    if (HasFailure()) return;
  }
  queue.Drain();
  CheckDropped(queue.TakeDropped(now_));
  while (queue.size() > 0 && !HasFailure()) {
    CheckBatch(queue.PopBatch(now_), true);
  }
  EXPECT_TRUE(waiting_.empty()) << waiting_.size() << " tasks were lost";
}

INSTANTIATE_TEST_SUITE_P(Traces, BatchQueuePropertyTest,
                         ::testing::Range(0, 40));

}  // namespace
}  // namespace sfmamba::batching
