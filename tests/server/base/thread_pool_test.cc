#include "server/base/thread_pool.h"

#include <pthread.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "tests/testing/patience.h"

namespace sfmamba::server {
namespace {

ThreadPool::Options Options(int threads, int max_queued) {
  ThreadPool::Options options;
  options.name = "decode";
  options.threads = threads;
  options.max_queued = max_queued;
  return options;
}

TEST(ThreadPoolTest, RunsOnNamedThreads) {
  ThreadPool pool(Options(1, 1));
  absl::Notification ran;
  char name[16] = "";
  ASSERT_TRUE(pool.TryRun([&] {
                    pthread_getname_np(pthread_self(), name, sizeof(name));
                    ran.Notify();
                  })
                  .ok());
  WaitFor(ran, "the pool's run of a function");
  EXPECT_STREQ(name, "decode");
}

TEST(ThreadPoolTest, RunsAsManyAtOnceAsItHasThreads) {
  ThreadPool pool(Options(3, 8));
  absl::BlockingCounter started(3);
  absl::Notification go;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(pool.TryRun([&] {
                      started.DecrementCount();
                      WaitFor(go, "the test's leave to go on", kTestPatience);
                    })
                    .ok());
  }
  WaitFor(started, "as many functions as threads");
  EXPECT_EQ(pool.busy(), 3);
  EXPECT_EQ(pool.queued(), 0);
  go.Notify();
}

TEST(ThreadPoolTest, RefusesWhenTheQueueIsFullAndLeavesTheFunction) {
  ThreadPool pool(Options(1, 2));
  absl::Notification started, go;
  ASSERT_TRUE(pool.TryRun([&] {
                    started.Notify();
                    WaitFor(go, "the test's leave to go on", kTestPatience);
                  })
                  .ok());
  WaitFor(started, "the start of a function");
  ASSERT_TRUE(pool.TryRun([] {}).ok());
  ASSERT_TRUE(pool.TryRun([] {}).ok());
  EXPECT_EQ(pool.queued(), 2);

  bool ran = false;
  absl::AnyInvocable<void()> fn = [&] { ran = true; };
  const absl::Status status = pool.TryRun(std::move(fn));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(GetErrorDetail(status).reason, "QUEUE_FULL");
  EXPECT_LT(GetErrorDetail(status).retry_after, absl::InfiniteDuration());
  fn();
  EXPECT_TRUE(ran);
  go.Notify();
}

TEST(ThreadPoolTest, RunsEverythingAcceptedBeforeItGoes) {
  std::atomic<int> ran = 0;
  {
    ThreadPool pool(Options(2, 100));
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(pool.TryRun([&] { ++ran; }).ok());
    }
  }
  EXPECT_EQ(ran, 100);
}

TEST(ThreadPoolTest, SurvivesAnException) {
  ThreadPool pool(Options(1, 2));
  ASSERT_TRUE(pool.TryRun([] { throw std::runtime_error("broken"); }).ok());
  absl::Notification ran;
  int busy = 0;
  ASSERT_TRUE(pool.TryRun([&] {
                    busy = pool.busy();
                    ran.Notify();
                  })
                  .ok());
  WaitFor(ran, "the pool's run of a function");
  EXPECT_EQ(busy, 1) << "the function that threw still counts";
}

TEST(ThreadPoolTest, FreesWhatAFunctionCapturedOnceItRan) {
  ThreadPool pool(Options(1, 2));
  auto captured = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = captured;
  ASSERT_TRUE(pool.TryRun([captured = std::move(captured)] {}).ok());
  absl::Notification ran;
  ASSERT_TRUE(pool.TryRun([&] { ran.Notify(); }).ok());
  WaitFor(ran, "the pool's run of a function");
  EXPECT_TRUE(watch.expired());
}

TEST(ThreadPoolTest, ManyProducersLoseNothing) {
  std::atomic<int> ran = 0, accepted = 0;
  {
    ThreadPool pool(Options(3, 16));
    std::vector<std::thread> producers;
    for (int p = 0; p < 4; ++p) {
      producers.emplace_back([&] {
        for (int i = 0; i < 2000; ++i) {
          if (pool.TryRun([&] { ++ran; }).ok()) ++accepted;
        }
      });
    }
    for (std::thread& producer : producers) Join(producer, "a producer");
  }
  EXPECT_EQ(ran, accepted);
  EXPECT_GT(ran, 0);
}

}  // namespace
}  // namespace sfmamba::server
