// Tests priority classes and admission of a BatchQueue.

#include <array>
#include <map>
#include <optional>
#include <vector>

#include "gtest/gtest.h"
#include "server/batching/batch_queue.h"
#include "server/batching/reservation.h"
#include "tests/server/batching/numbered_tasks.h"

namespace sfmamba::batching {
namespace {

using Numbers = std::vector<int>;

BatchTask MakeRanked(int id, server::Priority priority,
                     absl::Time deadline = absl::InfiniteFuture(),
                     int side = 224) {
  BatchTask task = MakeTask(id, deadline, side);
  task.priority = priority;
  return task;
}

TEST(BatchQueuePriorityTest, TheHigherClassLeavesFirst) {
  BatchQueue queue(Options(1, 0));
  queue.Push(MakeRanked(1, server::Priority::kLow, At(100)), At(0));
  queue.Push(MakeRanked(2, server::Priority::kNormal, At(100)), At(0));
  queue.Push(MakeRanked(3, server::Priority::kHigh, At(1000)), At(0));
  EXPECT_EQ(Ids(queue.PopBatch(At(0))), Numbers({3}));
  EXPECT_EQ(Ids(queue.PopBatch(At(0))), Numbers({2}));
  EXPECT_EQ(Ids(queue.PopBatch(At(0))), Numbers({1}));
}

TEST(BatchQueuePriorityTest, LowerClassesFillUpABatch) {
  BatchQueue queue(Options(4, 0));
  queue.Push(MakeRanked(1, server::Priority::kLow), At(0));
  queue.Push(MakeRanked(2, server::Priority::kNormal), At(0));
  queue.Push(MakeRanked(3, server::Priority::kHigh), At(0));
  EXPECT_EQ(Ids(queue.PopBatch(At(0))), Numbers({3, 2, 1}));
}

TEST(BatchQueuePriorityTest, LowerClassesDelayABatchToTwiceItsTimeAtMost) {
  const auto images = [](double milliseconds_of_8) {
    BatchQueue queue(Options(8, 0));
    Teach(&queue, 1, 10);
    Teach(&queue, 8, milliseconds_of_8);
    for (int i = 0; i < 7; ++i)
      queue.Push(MakeRanked(i, server::Priority::kLow), At(0));
    queue.Push(MakeRanked(7, server::Priority::kHigh), At(0));
    const Numbers ids = Ids(queue.PopBatch(At(0)));
    EXPECT_EQ(ids[0], 7);
    return ids.size();
  };
  EXPECT_EQ(images(45), 3) << "three take 20 ms";
  EXPECT_EQ(images(19), 8);
}

TEST(BatchQueuePriorityTest, LowerClassesMakeWayForNoBatchOfTheirOwn) {
  BatchQueue queue(Options(8, 0));
  Teach(&queue, 1, 10);
  Teach(&queue, 8, 45);
  for (int i = 0; i < 8; ++i)
    queue.Push(MakeRanked(i, server::Priority::kLow), At(0));
  // The eighth task is left for a batch with tasks that arrive later.
  EXPECT_EQ(Ids(queue.PopBatch(At(0))).size(), 7);
}

// In each of the three classes, 2000 tasks of 10 ms wait.
TEST(BatchQueuePriorityTest, ClassesShareTheDeviceEightToThreeToOne) {
  BatchQueue queue(Options(1, 0));
  for (int i = 0; i < 2000; ++i) {
    for (const server::Priority priority :
         {server::Priority::kHigh, server::Priority::kNormal,
          server::Priority::kLow}) {
      queue.Push(MakeRanked(i, priority), At(0));
    }
  }
  std::map<server::Priority, int> ran;
  for (int i = 0; i < 1200; ++i) {
    const std::optional<Batch> batch = queue.PopBatch(At(10 * i));
    ++ran[batch->tasks[0].priority];
    queue.Ran(batch->number, At(10 * i + 10));
  }
  EXPECT_NEAR(ran[server::Priority::kHigh], 800, 10);
  EXPECT_NEAR(ran[server::Priority::kNormal], 300, 10);
  EXPECT_NEAR(ran[server::Priority::kLow], 100, 10);
}

// Each batch of class LOW takes as long as eight batches of class HIGH.
TEST(BatchQueuePriorityTest, ClassesShareTimeAndNotBatches) {
  BatchQueue queue(Options(1, 0));
  Teach(&queue, 1, 10);
  Teach(&queue, 1, 80, 256);
  for (int i = 0; i < 1000; ++i) {
    queue.Push(MakeRanked(i, server::Priority::kHigh), At(0));
    queue.Push(MakeRanked(i, server::Priority::kLow, absl::InfiniteFuture(),
                          /*side=*/256),
               At(0));
  }
  int low = 0;
  for (int i = 0; i < 650; ++i) {
    low += queue.PopBatch(At(0))->tasks[0].priority == server::Priority::kLow;
  }
  EXPECT_NEAR(low, 10, 1) << "640 of the other take eight times as long";
}

TEST(BatchQueuePriorityTest, AClassThatDidNotWaitSavesNothingUp) {
  BatchQueue queue(Options(1, 0));
  Teach(&queue, 1, 10);
  const auto push = [&queue](server::Priority priority) {
    for (int i = 0; i < 100; ++i) queue.Push(MakeRanked(i, priority), At(0));
  };
  push(server::Priority::kNormal);
  for (int i = 0; i < 100; ++i) queue.PopBatch(At(0));
  push(server::Priority::kNormal);
  push(server::Priority::kLow);
  int low = 0;
  for (int i = 0; i < 40; ++i) {
    low += queue.PopBatch(At(0))->tasks[0].priority == server::Priority::kLow;
  }
  EXPECT_NEAR(low, 10, 1);
}

TEST(BatchQueuePriorityTest, AClassAloneKeepsTheOrderOfDeadlines) {
  BatchQueue queue(Options(1, 0));
  queue.Push(MakeRanked(1, server::Priority::kNormal, At(100)), At(0));
  queue.Push(MakeRanked(2, server::Priority::kNormal, At(70)),
             At(60));  // Task 1 has waited long.
  EXPECT_EQ(Ids(queue.PopBatch(At(60))), Numbers({2}));
}

AdmissionRequest Request(absl::Time deadline = absl::InfiniteFuture()) {
  AdmissionRequest request;
  request.key = Key();
  request.deadline = deadline;
  return request;
}

TEST(BatchQueueAdmissionTest, CountsOnlyWhatIsMoreUrgent) {
  BatchQueue queue(Options(1, 0));
  Teach(&queue, 1, 10);
  Teach(&queue, 1, 40, 256);
  for (int i = 0; i < 10; ++i) {
    queue.Push(MakeTask(i, At(500)), At(0));
    queue.Push(MakeTask(i, At(500), 256), At(0));
  }
  const auto start = [&](int deadline) {
    return absl::ToDoubleMilliseconds(
        queue.Estimate(Request(At(deadline)), At(0)).start - At(0));
  };
  EXPECT_NEAR(start(100), 0, 0.1);
  EXPECT_NEAR(start(501), 500, 1);
  EXPECT_NEAR(absl::ToDoubleMilliseconds(
                  queue.Estimate(Request(At(100)), At(0)).drained - At(0)),
              510, 1);
}

TEST(BatchQueueAdmissionTest, CountsThoseWithAnEarlierDeadlineAmongOthers) {
  BatchQueue queue(Options(1, 0));
  Teach(&queue, 1, 10);
  for (int deadline : {300, 600}) queue.Push(MakeTask(1, At(deadline)), At(0));
  const auto start = [&](int deadline) {
    return absl::ToDoubleMilliseconds(
        queue.Estimate(Request(At(deadline)), At(0)).start - At(0));
  };
  EXPECT_NEAR(start(299), 0, 0.1);
  EXPECT_NEAR(start(500), 10, 0.1);
  EXPECT_NEAR(start(600), 20, 0.1);
}

TEST(BatchQueueAdmissionTest, HigherClassesOfItsKeyGoBeforeTheirTime) {
  BatchQueue queue(Options(1, 0));
  Teach(&queue, 1, 10);
  for (int i = 0; i < 3; ++i) queue.Push(MakeTask(i, At(400)), At(0));
  for (int i = 0; i < 20; ++i) {
    BatchTask task = MakeTask(i, At(900));
    task.priority = server::Priority::kHigh;
    queue.Push(std::move(task), At(0));
  }
  // The request runs after the three tasks of its own class, which take 30 ms.
  // The higher class gets 8 ms for every 3 ms of the request's class, so it
  // takes 80 ms before the request.
  EXPECT_NEAR(absl::ToDoubleMilliseconds(
                  queue.Estimate(Request(At(500)), At(0)).start - At(0)),
              30 + 80, 1);
}

// The request runs after the image that is being decoded, although this image
// is not in the queue yet. The request also runs after the three waiting tasks,
// because their deadlines are earlier. One of them has another key.
TEST(BatchQueueAdmissionTest, ImagesThatAreDecodedLetOthersGoBefore) {
  BatchQueue queue(Options(1, 0));
  Teach(&queue, 1, 10);
  Teach(&queue, 1, 40, 256);
  for (int deadline : {100, 300}) queue.Push(MakeTask(1, At(deadline)), At(0));
  queue.Push(MakeTask(2, At(400), 256), At(0));
  AdmissionRequest request = Request(At(500));
  request.decoding = request.own_decoding = 1;
  EXPECT_NEAR(
      absl::ToDoubleMilliseconds(queue.Estimate(request, At(0)).start - At(0)),
      3 * 10 + 40, 1);
}

TEST(BatchQueueAdmissionTest, ThoseWithALaterDeadlineFillTheRequestsBatch) {
  BatchQueue queue(Options(8, 0));
  Teach(&queue, 1, 10);
  Teach(&queue, 8, 24);  // Four images therefore take 16 ms.
  for (int i = 0; i < 3; ++i) queue.Push(MakeTask(i, At(900)), At(0));
  EXPECT_NEAR(absl::ToDoubleMilliseconds(
                  queue.Estimate(Request(At(500)), At(0)).finish - At(0)),
              16, 1);
}

TEST(BatchQueueAdmissionTest, TheRequestsImagesOfOtherKeysRunBeforeItsLargest) {
  BatchQueue queue(Options(1, 0));
  Teach(&queue, 1, 10);
  Teach(&queue, 1, 40, 256);
  AdmissionRequest request = Request(At(500));
  request.key = Key(256);
  const auto times = [&] {
    const AdmissionEstimate estimate = queue.Estimate(request, At(0));
    std::vector<int> times;
    for (const absl::Time time :
         {estimate.start, estimate.finish, estimate.drained,
          estimate.drained_alone, At(0) + estimate.work}) {
      times.push_back(
          absl::ToInt64Milliseconds(time - At(0) + absl::Microseconds(500)));
    }
    return times;
  };
  EXPECT_EQ(times(), std::vector<int>({0, 40, 40, 40, 40}));
  request.others[Key()] = 3;
  // Only the predicted finish, which is the second number, includes a margin.
  // For a wait of 30 ms, the margin is about 1 ms, so the finish is 71 ms.
  EXPECT_EQ(times(), std::vector<int>({30, 71, 70, 70, 70}));
  queue.Push(MakeTask(1, At(400)), At(0));  // An earlier deadline, other key.
  EXPECT_EQ(times(), std::vector<int>({40, 81, 80, 70, 70}));
  request.others[Key(64)] = 5;  // This key has no estimates.
  EXPECT_EQ(times(), std::vector<int>({40, 81, 80, 70, 70}));
}

// Tasks with an earlier deadline than the request count as work before it.
// Tasks with a later deadline do not.
TEST(BatchQueueAdmissionTest, CountsWhatHasAnEarlierDeadline) {
  BatchQueue queue(Options(1, 0));
  Teach(&queue, 1, 10);
  for (int i = 0; i < 50; ++i) queue.Push(MakeTask(i, At(500)), At(0));
  const auto in_time = [&](absl::Time deadline) {
    return queue.Estimate(Request(deadline), At(0)).IsInTime(Request(deadline));
  };
  EXPECT_FALSE(in_time(At(501)));
  EXPECT_TRUE(in_time(At(530)));
  EXPECT_TRUE(in_time(At(499))) << "more urgent than those that wait";
  AdmissionRequest impatient = Request(At(530));
  impatient.start_by = At(20);
  EXPECT_NEAR(absl::ToDoubleMilliseconds(
                  queue.Estimate(impatient, At(0)).start - At(0)),
              0, 0.1)
      << "one that must soon be in a batch is ordered by that";
  impatient.deadline = absl::InfiniteFuture();
  impatient.start_by = At(600);
  EXPECT_NEAR(absl::ToDoubleMilliseconds(
                  queue.Estimate(impatient, At(0)).start - At(0)),
              500, 1);
}

TEST(BatchQueueAdmissionTest, KnowsTheBatchesThatRun) {
  BatchQueue queue(Options(1, 0), 2);
  Teach(&queue, 1, 10);
  for (int id : {1, 2}) queue.Push(MakeTask(id), At(0));
  const auto start = [&](int now) {
    return absl::ToDoubleMilliseconds(
        queue.Estimate(Request(At(1000)), At(now)).start - At(now));
  };
  const uint64_t first = queue.PopBatch(At(0))->number;
  EXPECT_NEAR(start(0), 0, 0.1);
  EXPECT_NEAR(start(0), 0, 0.1);
  const uint64_t second = queue.PopBatch(At(4))->number;
  EXPECT_NEAR(start(4), 6, 0.1);
  queue.Ran(first, At(10));
  EXPECT_NEAR(start(10), 0, 0.1);
  queue.Ran(second, At(14));
  EXPECT_NEAR(start(14), 0, 0.1);
}

TEST(BatchQueueAdmissionTest, AdmitsWhereNothingIsKnownOrItIsOld) {
  BatchQueue queue(Options(1, 0));
  EXPECT_TRUE(queue.Estimate(Request(At(1)), At(0)).IsInTime(Request(At(1))));
  Teach(&queue, 1, 10);
  EXPECT_FALSE(queue.Estimate(Request(At(1)), At(0)).IsInTime(Request(At(1))));
  const auto in_time = [&] {
    return queue.Estimate(Request(At(5001)), At(5000))
        .IsInTime(Request(At(5001)));
  };
  EXPECT_TRUE(in_time());
  queue.Push(MakeTask(1, At(9000)), At(5000));
  EXPECT_FALSE(in_time()) << "the one that waits will show whether it is right";
  const uint64_t number = queue.PopBatch(At(5000))->number;
  EXPECT_FALSE(in_time()) << "so will the one that runs";
  queue.Ran(number, At(5000), /*failed=*/true);
  EXPECT_TRUE(in_time()) << "nothing was learnt";
}

// Each small batch has waited 50 ms for other models. Full batches are expected
// to wait equally long.
TEST(BatchQueueAdmissionTest, ABatchWaitsForOtherModelsAsThoseBefore) {
  BatchQueue queue(Options(8, 0));
  Teach(&queue, 1, 1);
  Teach(&queue, 8, 40);
  for (int i = 0; i < 40; ++i) {
    const int now = 100 * i;
    queue.Push(MakeTask(i), At(now));
    const uint64_t number =
        queue.PopBatch(At(now), absl::Milliseconds(50))->number;
    queue.Ran(number, At(now + 1));
  }
  EXPECT_NEAR(absl::ToDoubleMilliseconds(
                  queue.Estimate(Request(At(5000)), At(3902)).start - At(3902)),
              50, 1);
}

TEST(BatchQueueAdmissionTest, TheNextOfTheKeyThatRanLastJoinsItsBatch) {
  BatchQueue queue(Options(4, 1000));
  Teach(&queue, 1, 30);
  Teach(&queue, 4, 40);
  for (int i = 0; i < 4; ++i) queue.Push(MakeTask(i), At(0));
  queue.Ran(queue.PopBatch(At(0))->number, At(40));
  queue.Push(MakeTask(5), At(40));
  EXPECT_EQ(queue.Wait(At(40)), absl::ZeroDuration());
}

TEST(BatchQueueAdmissionTest, WaitIsThatOfANewClientsTurn) {
  QueueRoom room({1000, 1000});
  BatchQueue queue(Options(1, 0));
  EXPECT_EQ(queue.Wait(At(0)), absl::ZeroDuration());
  Teach(&queue, 1, 10);
  for (int i = 0; i < 20; ++i) {
    for (const char* client : {"a", "b", "c"}) {
      BatchTask task = MakeTask(i, At(500));
      task.reservation = *room.Take(1, 0, client);
      queue.Push(std::move(task), At(0));
    }
  }
  EXPECT_NEAR(absl::ToDoubleMilliseconds(queue.Wait(At(0))), 30, 2)
      << "a batch of each of the others";
}

}  // namespace
}  // namespace sfmamba::batching
