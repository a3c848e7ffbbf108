#include "server/threads/worker.h"

#include <pthread.h>
#include <sys/resource.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "server/threads/thread_name.h"
#include "tests/testing/patience.h"

namespace sfmamba::server {
namespace {

TEST(WorkerTest, DoesJobsInTheirOrder) {
  std::vector<int> done;  // Only the worker's thread uses this.
  absl::Notification last;
  Worker worker({"test"});
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

TEST(WorkerTest, ItsThreadHasItsName) {
  Worker worker({"one of several"});
  char name[16] = "";
  worker.Run([&] { pthread_getname_np(pthread_self(), name, sizeof(name)); });
  EXPECT_STREQ(name, "one of several");
}

TEST(WorkerTest, WhatAJobHoldsMayPushAnotherAsItGoes) {
  const TimeLimit limit("the end of a worker", kTestPatience);
  absl::Notification pushed;
  Worker worker({"test"});
  const auto push = [&](void*) {
    worker.Push([&pushed](bool) { pushed.Notify(); });
  };
  worker.Push([held = std::shared_ptr<void>(nullptr, push)](bool) {});
  EXPECT_TRUE(pushed.WaitForNotificationWithTimeout(kPatience));
}

TEST(WorkerTest, TellsWaitingJobsThatTheyAreStopped) {
  absl::Notification started, go;
  std::string told;
  auto worker = std::make_unique<Worker>(Worker::Options{"test", 2});
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

TEST(WorkerTest, RepeatsTheRoutineAndStillDoesJobs) {
  std::atomic<int> calls{0};
  Worker worker({"test", 2});
  absl::Notification done;
  worker.Push([&done](bool) { done.Notify(); });
  ASSERT_TRUE(done.WaitForNotificationWithTimeout(kPatience));
  worker.Repeat(absl::ZeroDuration(), [&calls] {
    ++calls;
    return absl::Microseconds(10);
  });
  WaitUntil([&calls] { return calls.load() >= 3; }, "three calls");
  absl::Notification again;
  worker.Push([&again](bool) { again.Notify(); });
  EXPECT_TRUE(again.WaitForNotificationWithTimeout(kPatience));
}

TEST(WorkerTest, CallsWithAPeriodUntilItGoes) {
  std::atomic<int> calls{0};
  absl::BlockingCounter third(3);
  {
    Worker worker("test", absl::Milliseconds(1), [&] {
      if (++calls <= 3) third.DecrementCount();
    });
    WaitFor(third, "the third call");
  }
  EXPECT_GE(calls.load(), 3);
}

TEST(WorkerTest, DoesNotWaitForItsPeriodWhenItGoes) {
  TimeLimit limit("the end of a worker", kTestPatience);
  bool called = false;
  {
    Worker worker("test", absl::Hours(1), [&] { called = true; });
  }
  EXPECT_FALSE(called);
}

TEST(WorkerTest, CallsAreOfLowPriorityIfItsStartWas) {
  Worker background({"test", 1, LowerThisThreadsPriority});
  const int before = getpriority(PRIO_PROCESS, 0);
  int inside = 0, inner = 0;
  std::thread::id first, second;
  background.Run([&] {
    first = std::this_thread::get_id();
    inside = getpriority(PRIO_PROCESS, 0);
    std::thread([&] { inner = getpriority(PRIO_PROCESS, 0); }).join();
  });
  background.Run([&] { second = std::this_thread::get_id(); });
  EXPECT_EQ(inside, 10);
  EXPECT_EQ(inner, 10);
  EXPECT_EQ(getpriority(PRIO_PROCESS, 0), before);
  EXPECT_EQ(first, second);
  EXPECT_NE(first, std::this_thread::get_id());
}

TEST(WorkerTest, CallsOfManyThreadsRunOneAfterTheOther) {
  Worker background({"test"});
  std::atomic<int> running{0};
  int calls = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 8; ++i) {
    callers.emplace_back([&] {
      for (int n = 0; n < 50; ++n) {
        background.Run([&] {
          EXPECT_EQ(++running, 1);
          ++calls;
          --running;
        });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(calls, 400);
}

}  // namespace
}  // namespace sfmamba::server
