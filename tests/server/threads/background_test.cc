#include "server/threads/background.h"

#include <sys/resource.h>

#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace sfmamba::server {
namespace {

TEST(BackgroundThreadTest, CallsAreOfLowPriorityAndTheCallerIsNot) {
  BackgroundThread background;
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

TEST(BackgroundThreadTest, StartsWithWhatItIsGiven) {
  std::thread::id started, called;
  BackgroundThread background([&] { started = std::this_thread::get_id(); });
  background.Run([&] { called = std::this_thread::get_id(); });
  EXPECT_EQ(started, called);
}

TEST(BackgroundThreadTest, CallsOfManyThreadsRunOneAfterTheOther) {
  BackgroundThread background;
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
