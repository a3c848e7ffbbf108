#include "model/ops/affinity.h"

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace sfmamba::ops {
namespace {

TEST(AffinityTest, AThreadAndThoseThatItStartsStayWhereItIsBound) {
  const std::vector<int> all = ThreadProcessors();
  ASSERT_FALSE(all.empty());
  const int last = all.back();
  BindThread({last});
  EXPECT_EQ(ThreadProcessors(), std::vector<int>({last}));
  EXPECT_EQ(sched_getcpu(), last);
  std::thread([last] {
    EXPECT_EQ(ThreadProcessors(), std::vector<int>({last}));
  }).join();
  BindThread(all);
  EXPECT_EQ(ThreadProcessors(), all);
}

TEST(AffinityTest, ProcessorsThatAreNotThereAreLeftOut) {
  const std::vector<int> all = ThreadProcessors();
  BindThread({-1, all.front(), CPU_SETSIZE, 1 << 30});
  EXPECT_EQ(ThreadProcessors(), std::vector<int>({all.front()}));
  BindThread(all);
  for (const auto& none :
       {std::vector<int>(), std::vector<int>({-5, 1 << 30})}) {
    BindThread(none);
    EXPECT_EQ(ThreadProcessors(), all);
  }
}

TEST(AffinityTest, AMovedThreadRunsThereAndMayRunWhereItMightBefore) {
  const std::vector<int> all = ThreadProcessors();
  std::atomic<pid_t> id{0};
  std::atomic<bool> end{false};
  std::atomic<int> seen{-1};  // The CPU on which the thread runs.
  std::thread thread([&] {
    id = gettid();
    while (!end.load()) seen = sched_getcpu();
    EXPECT_EQ(ThreadProcessors(), all);
  });
  while (id.load() == 0) std::this_thread::yield();
  for (const int processor : all) {
    while (seen.load() != processor) MoveThread(id.load(), processor);
  }
  MoveThread(id.load(), -1);
  MoveThread(id.load(), CPU_SETSIZE);
  end = true;
  thread.join();
}

TEST(AffinityTest, AThreadIsNotMovedWhereItMayNotRun) {
  const std::vector<int> all = ThreadProcessors();
  if (all.size() < 2) GTEST_SKIP() << "needs two processors";
  BindThread({all.front()});
  MoveThread(gettid(), all.back());
  EXPECT_EQ(sched_getcpu(), all.front());
  EXPECT_EQ(ThreadProcessors(), std::vector<int>({all.front()}));
  BindThread(all);
}

}  // namespace
}  // namespace sfmamba::ops
