#include "server/repository/worker.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "tests/testing/patience.h"

namespace sfmamba::repository {
namespace {

absl::Duration Never() { return absl::InfiniteDuration(); }

TEST(WorkerTest, DoesJobsInTheirOrder) {
  std::vector<int> done;  // By the worker's thread.
  absl::Notification last;
  Worker worker("test", 10, Never);
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(worker.Push([&done, i](bool stopped) {
      EXPECT_FALSE(stopped);
      done.push_back(i);
    }));
  }
  worker.Push([&last](bool) { last.Notify(); });
  ASSERT_TRUE(last.WaitForNotificationWithTimeout(kPatience));
  EXPECT_EQ(done, (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST(WorkerTest, TellsWaitingJobsThatTheyAreStopped) {
  absl::Notification started, go;
  std::string told;
  auto worker = std::make_unique<Worker>("test", 2, Never);
  worker->Push([&](bool stopped) {
    told += stopped ? "stopped " : "done ";
    started.Notify();
    go.WaitForNotification();
  });
  started.WaitForNotification();
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(worker->Push(
        [&told](bool stopped) { told += stopped ? "stopped " : "done "; }));
  }
  EXPECT_FALSE(worker->Push([](bool) { ADD_FAILURE(); })) << "two wait";
  worker->Stop();
  EXPECT_TRUE(worker->stopping());
  EXPECT_FALSE(worker->Push([](bool) { ADD_FAILURE(); }));
  go.Notify();
  worker.reset();
  EXPECT_EQ(told, "done stopped stopped ");
}

TEST(WorkerTest, CallsTheRoutineOnceItHasBegunAndStillDoesJobs) {
  std::atomic<int> calls{0};
  Worker worker("test", 2, [&calls] {
    ++calls;
    return absl::Microseconds(10);
  });
  absl::Notification done;
  worker.Push([&done](bool) { done.Notify(); });
  ASSERT_TRUE(done.WaitForNotificationWithTimeout(kPatience));
  EXPECT_EQ(calls.load(), 0) << "it has not begun";
  worker.Begin();
  WaitUntil([&calls] { return calls.load() >= 3; }, "three calls");
  absl::Notification again;
  worker.Push([&again](bool) { again.Notify(); });
  EXPECT_TRUE(again.WaitForNotificationWithTimeout(kPatience));
}

}  // namespace
}  // namespace sfmamba::repository
