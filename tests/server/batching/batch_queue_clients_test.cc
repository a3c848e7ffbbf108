// Tests a BatchQueue in which one client sends much more than the others.

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/batching/batch_queue.h"
#include "server/batching/reservation.h"
#include "tests/server/batching/numbered_tasks.h"

namespace sfmamba::batching {
namespace {

// A device takes 10 ms per image. The client "much" floods the queue with 300
// images without deadlines.
class BatchQueueClientsTest : public testing::Test {
 protected:
  BatchQueueClientsTest() : room_({1000, 1000}, {}), queue_(Options(1, 0)) {
    Teach(&queue_, 1, 10);
    for (int i = 0; i < 300; ++i) Push(i, "much");
  }

  // Adds an image. If it has no deadline, the default of 4 s from now applies,
  // as in the server.
  void Push(int id, const std::string& client,
            absl::Time deadline = absl::InfiniteFuture(),
            server::Priority priority = server::Priority::kNormal) {
    const bool is_default = deadline == absl::InfiniteFuture();
    BatchTask task = MakeTask(id, is_default ? At(now_ + 4000) : deadline);
    task.finish_by = task.deadline;
    task.priority = priority;
    task.reservation = *room_.Take(1, 0, client);
    queue_.Push(std::move(task), At(now_));
  }

  // Runs the next batch and returns the number of its image. Returns -1 if no
  // batch is due, or if the batch has more than one image.
  int Next() {
    const auto batch = queue_.PopBatch(At(now_));
    if (!batch.has_value() || batch->tasks.size() != 1) return -1;
    now_ += 10;
    queue_.Ran(batch->number, At(now_));
    return Id(batch->tasks[0]);
  }

  // Returns the milliseconds until the batch with the request's last image
  // would start.
  double Start(const AdmissionRequest& request) {
    return absl::ToDoubleMilliseconds(queue_.Estimate(request, At(now_)).start -
                                      At(now_));
  }

  QueueRoom room_;
  BatchQueue queue_;
  int now_ = 0;  // Milliseconds.
};

TEST_F(BatchQueueClientsTest, ThoseOfAClientAreInOrderOfArrival) {
  for (int i = 0; i < 300; ++i) {
    ASSERT_EQ(Next(), i);
    Push(300 + i, "much");
  }
}

TEST_F(BatchQueueClientsTest, ATaskKnowsHowManyBatchesRanBeforeIt) {
  EXPECT_EQ(queue_.active_clients(), 1);
  for (int i = 0; i < 5; ++i) Next();
  Push(300, "little");
  EXPECT_EQ(queue_.active_clients(), 2);
  while (true) {
    const auto batch = queue_.PopBatch(At(now_));
    ASSERT_TRUE(batch.has_value());
    const auto passed = batch->number - 1 - batch->tasks[0].came_after;
    if (Id(batch->tasks[0]) == 300) {
      EXPECT_LE(passed, 2) << "the turns of two clients";
      break;
    }
    EXPECT_EQ(passed, Id(batch->tasks[0])) << "they came before all batches";
    queue_.Ran(batch->number, At(now_ += 10));
  }
  EXPECT_EQ(queue_.active_clients(), 1);
}

TEST_F(BatchQueueClientsTest, ADeadlineIsKeptBesideAFloodWithoutDeadlines) {
  for (int i = 0; i < 200; ++i) {
    Next();
    Push(1000, "much");
  }
  AdmissionRequest request;
  request.key = Key();
  request.client = "little";
  // One deadline is before all deadlines of the flood, and one is after them.
  for (const int deadline : {500, 9000}) {
    request.deadline = At(now_ + deadline);
    EXPECT_TRUE(queue_.Estimate(request, At(now_)).IsInTime(request));
    Push(1, "little", request.deadline);
    int before = 0;
    while (Next() != 1) ++before;
    EXPECT_LE(before, 2 + 2);
  }
}

TEST_F(BatchQueueClientsTest, AClientIsExpectedToComeInItsTurn) {
  AdmissionRequest request;
  request.key = Key();
  request.deadline = At(9000);
  request.client = "much";
  EXPECT_NEAR(Start(request), 3000, 1);
  request.client = "little";
  EXPECT_NEAR(Start(request), 10, 1);
  for (int i = 0; i < 10; ++i) Push(i, "little", At(8000));
  EXPECT_NEAR(Start(request), 210, 10) << "as many of the other";
  request.deadline = At(100);
  EXPECT_NEAR(Start(request), 0, 1) << "its first image";
}

TEST_F(BatchQueueClientsTest, WhatOthersDecodeIsBeforeItForItsTurnsOnly) {
  AdmissionRequest request;
  request.key = Key();
  request.client = "little";
  request.decoding = 100;
  request.other_clients = 3;
  EXPECT_NEAR(Start(request), 40, 1);
  request.own_decoding = 5;
  EXPECT_NEAR(Start(request), 5 * 10 + 3 * 6 * 10 + 6 * 10, 1);
}

TEST_F(BatchQueueClientsTest, TheFloodIsNotStarvedByShortDeadlines) {
  for (int i = 0; i < 800; ++i) {
    Push(1000 + i, "urgent", At(now_ + 500));
    if (Next() == 100) return;
  }
  FAIL() << "it has waited for " << now_ << " ms";
}

// The clients "some" and "much" have 100 and 300 images waiting. Each sends its
// next image when one is answered.
TEST_F(BatchQueueClientsTest, ASmallerFloodGetsItsPart) {
  for (int i = 0; i < 100; ++i) Push(1000, "some");
  int last = 0;
  for (int i = 0; i < 1000; ++i) {
    const bool is_some = Next() == 1000;
    Push(is_some ? 1000 : 1, is_some ? "some" : "much");
    if (i >= 800) last += is_some;
  }
  EXPECT_NEAR(last, 100, 2) << "of 200";
}

// The client "little" always has two tasks of priority LOW waiting. Beside a
// NORMAL client, it should get a quarter of the time.
TEST_F(BatchQueueClientsTest, WhoSendsLittleGetsNoMoreThanItsPrioritysShare) {
  int low = 0;
  for (int i = 0; i < 400; ++i) {
    if (i < 2) Push(1, "little", At(now_ + 500), server::Priority::kLow);
    const int id = Next();
    low += id == 1;
    const bool is_low = id == 1;
    Push(is_low ? 1 : 1000, is_low ? "little" : "much",
         is_low ? At(now_ + 500) : absl::InfiniteFuture(),
         is_low ? server::Priority::kLow : server::Priority::kNormal);
  }
  EXPECT_NEAR(low, 100, 10);
}

// The queue knows that a batch of eight images takes 80 ms. The client "much"
// always has 160 images waiting, which take 1.6 s. Their deadlines are 2 s.
class SlowedDeviceTest : public testing::Test {
 protected:
  SlowedDeviceTest() : room_({1000, 1000}, {}), queue_(Options(8, 0)) {
    for (int images : {1, 2, 4, 8}) Teach(&queue_, images, Takes(images));
    Refill();
  }

  // Returns the known duration of a batch, in milliseconds.
  static int Takes(int images) { return 16 + 8 * images; }

  void Push(int id, const std::string& client, int milliseconds) {
    BatchTask task = MakeTask(id, At(now_ + milliseconds));
    task.finish_by = task.deadline;
    task.reservation = *room_.Take(1, 0, client);
    queue_.Push(std::move(task), At(now_));
  }
  void Refill() {
    while (queue_.size() < 160) Push(0, "much", 2000);
  }

  // Runs a batch that takes `times` times its known duration. Reports the batch
  // as failed, so that the queue does not learn the longer duration. This is
  // like the first batches after the device has become slower.
  Batch Run(int times) {
    Batch batch = *queue_.PopBatch(At(now_));
    const int images = static_cast<int>(batch.tasks.size());
    if (images > 0) now_ += Takes(images) * times;
    queue_.Ran(batch.number, At(now_), /*failed=*/true);
    for (BatchTask& task : batch.tasks) task.reservation.Release();
    for (BatchTask& task : batch.dropped) task.reservation.Release();
    // Keeps the known durations fresh.
    Teach(&queue_, 8, 80, 224, At(now_));
    return batch;
  }

  QueueRoom room_;
  BatchQueue queue_;
  int now_ = 0;  // Milliseconds.
};

TEST_F(SlowedDeviceTest, TasksOfWhoSendsLittleEndInTime) {
  int sent = 0, in_time = 0, ran = 0, batches = 0, lost = 0;
  while (now_ < 60'000) {
    Refill();
    if (now_ >= 300 * sent) Push(++sent, "little", 2000);
    const Batch batch = Run(3);
    lost += batch.dropped.size();
    if (batch.tasks.empty()) continue;
    ++batches;
    for (const BatchTask& task : batch.tasks) {
      ++ran;
      if (Id(task) != 0) in_time += At(now_) <= task.finish_by;
    }
  }
  EXPECT_GT(sent, 150);
  EXPECT_GE(in_time, sent - 1);
  EXPECT_GT(lost, 100) << "of the other";
  EXPECT_GT(ran, 7.5 * batches) << "batches stay full";
}

// The queue has learned that batches now take three times as long as before.
// The 160 waiting images of "much" need 4.8 s instead of 1.6 s, so most of them
// cannot meet their deadlines of 2 s.
TEST_F(SlowedDeviceTest, WhoSendsLittleIsAdmitted) {
  for (int images : {1, 2, 4, 8}) {
    Teach(&queue_, images, 3 * Takes(images), 224, At(now_));
  }
  // Asks for admission at the start, and just before the waiting images expire.
  for (int now : {0, 1990}) {
    now_ = now;
    AdmissionRequest request;
    request.key = Key();
    request.deadline = At(now_ + 2000);
    request.client = "much";
    EXPECT_FALSE(queue_.Estimate(request, At(now_)).IsInTime(request)) << now;
    request.client = "little";
    EXPECT_TRUE(queue_.Estimate(request, At(now_)).IsInTime(request)) << now;
  }
}

TEST_F(SlowedDeviceTest, WhoIsAloneHasItsTasksInTheOrderOfTheirDeadlines) {
  Push(1, "much", 1500);
  Push(2, "much", 1400);
  const Batch batch = Run(1);
  EXPECT_EQ(Id(batch.tasks[0]), 2);
  EXPECT_EQ(Id(batch.tasks[1]), 1);
}

}  // namespace
}  // namespace sfmamba::batching
