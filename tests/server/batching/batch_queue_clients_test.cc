// What callers of a BatchQueue notice of one that sends much.

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/batching/batch_queue.h"
#include "server/batching/reservation.h"
#include "tests/server/batching/numbered_tasks.h"

namespace sfmamba::batching {
namespace {

// A device that takes 10 ms an image, and a flood of 300 of the client "much",
// none of which has a deadline.
class BatchQueueClientsTest : public testing::Test {
 protected:
  BatchQueueClientsTest() : room_({1000, 1000}, {}), queue_(Options(1, 0)) {
    Teach(&queue_, 1, 10);
    for (int i = 0; i < 300; ++i) Push(i, "much");
  }

  // Without a deadline the server's default applies, 4 s.
  void Push(int id, const std::string& client,
            absl::Time deadline = absl::InfiniteFuture()) {
    const bool is_default = deadline == absl::InfiniteFuture();
    BatchTask task = MakeTask(id, is_default ? At(now_ + 4000) : deadline);
    task.finish_by = task.deadline;
    task.has_default_deadline = is_default;
    task.reservation = *room_.Take(1, 0, client);
    queue_.Push(std::move(task), At(now_));
  }

  // Runs the next image; its number.
  int Next() {
    const auto batch = queue_.PopBatch(At(now_));
    if (!batch.has_value() || batch->tasks.size() != 1) return -1;
    now_ += 10;
    queue_.Ran(batch->number, At(now_));
    return Id(batch->tasks[0]);
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

TEST_F(BatchQueueClientsTest, ADeadlineIsKeptBesideAFloodWithoutDeadlines) {
  for (int i = 0; i < 200; ++i) {
    Next();
    Push(1000, "much");
  }
  AdmissionRequest request;
  request.key = Key();
  request.deadline = At(now_ + 500);
  EXPECT_TRUE(queue_.Estimate(request, At(now_)).IsInTime(request));
  Push(1, "little", request.deadline);
  EXPECT_EQ(Next(), 1);
}

// The default deadline, which no client asked for, comes near.
TEST_F(BatchQueueClientsTest, ADefaultDeadlineMakesTheFloodNoMoreUrgent) {
  for (int i = 0; i < 180; ++i) Push(1000, "much");
  while (now_ < 3000) Next();  // 180 are left, until 4.8 s.
  AdmissionRequest request;
  request.key = Key();
  request.deadline = At(4050);
  EXPECT_TRUE(queue_.Estimate(request, At(now_)).IsInTime(request));
}

TEST_F(BatchQueueClientsTest, WhoSendsLittleDoesNotWaitForTheFlood) {
  for (int i = 0; i < 200; ++i) {
    Next();
    Push(1000, "much");
  }
  Push(1, "little");
  int before = 0;
  while (Next() != 1) ++before;
  EXPECT_LT(before, 10);
}

TEST_F(BatchQueueClientsTest, TheFloodIsNotStarvedByShortDeadlines) {
  for (int i = 0; i < 800; ++i) {
    Push(1000 + i, "urgent", At(now_ + 500));
    if (Next() == 100) return;
  }
  FAIL() << "it has waited for " << now_ << " ms";
}

// Each sends the next when one is answered. In order of arrival the smaller
// flood would get a quarter.
TEST_F(BatchQueueClientsTest, ASmallerFloodGetsMoreThanItsPart) {
  for (int i = 0; i < 100; ++i) Push(1000, "some");
  int last = 0;
  for (int i = 0; i < 1000; ++i) {
    const bool is_some = Next() == 1000;
    Push(is_some ? 1000 : 1, is_some ? "some" : "much");
    if (i >= 800) last += is_some;
  }
  EXPECT_GT(last, 65);
  EXPECT_LT(last, 100) << "of 200";
}

}  // namespace
}  // namespace sfmamba::batching
