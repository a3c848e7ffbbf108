#include "model/ops/compute_pool.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/barrier.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "model/ops/affinity.h"

namespace sfmamba::ops {
namespace {

// Runs a loop of two parts. Each part waits until both have begun and then
// calls body(). So the loop needs two threads.
template <typename Body>
void RunOnTwoThreads(ComputePool& pool, Body body) {
  absl::Barrier barrier(2);
  pool.Run(2, 2, 1, [&](int64_t, int64_t) {
    barrier.Block();
    body();
  });
}

TEST(ComputePoolTest, ComputesEachElementOnceInPartsOfAtLeastTheGrain) {
  ComputePool pool;
  for (const auto& [count, grain] :
       {std::pair{1, 1}, {2, 1}, {7, 3}, {1000, 1}, {1000, 24}, {49, 24}}) {
    for (int threads : {1, 2, 3, 8}) {
      SCOPED_TRACE(testing::Message() << count << " by " << grain << " on "
                                      << threads << " threads");
      std::vector<std::atomic<int>> calls(count);
      std::atomic<bool> small{false};
      pool.Run(threads, count, grain, [&](int64_t begin, int64_t end) {
        if (end - begin < std::min(count, grain)) small = true;
        for (int64_t i = begin; i < end; ++i) ++calls[i];
      });
      for (int i = 0; i < count; ++i) EXPECT_EQ(calls[i].load(), 1) << i;
      EXPECT_FALSE(small);
    }
  }
}

TEST(ComputePoolTest, CallsNothingForNoElements) {
  ComputePool pool;
  pool.Run(4, 0, 1, [](int64_t, int64_t) { ADD_FAILURE(); });
}

TEST(ComputePoolTest, MakesOneCallOnOneThreadOrForLessThanTwoGrains) {
  ComputePool pool;
  for (const auto& [threads, grain] : {std::pair{1, 1}, {4, 51}}) {
    const std::thread::id caller = std::this_thread::get_id();
    int calls = 0;
    pool.Run(threads, 100, grain, [&](int64_t begin, int64_t end) {
      EXPECT_EQ(std::this_thread::get_id(), caller);
      EXPECT_EQ(end - begin, 100);
      ++calls;
    });
    EXPECT_EQ(calls, 1);
  }
}

// This must hold even if the workers fall asleep between the loops.
TEST(ComputePoolTest, AWorkerHelps) {
  ComputePool pool;
  std::atomic<int> parts{0};
  for (int i = 0; i < 1000; ++i) RunOnTwoThreads(pool, [&] { ++parts; });
  EXPECT_EQ(parts.load(), 2000);
}

TEST(ComputePoolTest, ThrowsWhatTheCallerOrAWorkerThrew) {
  ComputePool pool;
  const std::thread::id caller = std::this_thread::get_id();
  for (const bool from_caller : {true, false}) {
    const auto run = [&] {
      RunOnTwoThreads(pool, [&] {
        if ((std::this_thread::get_id() == caller) == from_caller)
          throw std::runtime_error("a part failed");
      });
    };
    EXPECT_THROW(run(), std::runtime_error);
  }
  RunOnTwoThreads(pool, [] {});  // The pool still works.
}

TEST(ComputePoolTest, ComputesNoMorePartsOnceOneFailed) {
  ComputePool pool;
  std::atomic<int> calls{0};
  const auto run = [&] {
    pool.Run(2, 1 << 20, 1, [&](int64_t, int64_t) {
      ++calls;
      throw std::runtime_error("a part failed");
    });
  };
  EXPECT_THROW(run(), std::runtime_error);
  EXPECT_LE(calls.load(), 2);  // One on each thread.
}

TEST(ComputePoolTest, ServesManyCallersAtOnce) {
  ComputePool pool;
  std::vector<std::thread> callers;
  std::vector<int64_t> sums(8);
  for (size_t c = 0; c < sums.size(); ++c) {
    callers.emplace_back([&pool, &sum = sums[c]] {
      for (int loop = 0; loop < 300; ++loop) {
        std::atomic<int64_t> part_sum{0};
        pool.Run(3, 100, 1, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) part_sum += i;
        });
        sum += part_sum;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  for (int64_t sum : sums) EXPECT_EQ(sum, 300 * 4950);
}

// The pool needs some time to notice that its CPUs are busy. The loops run
// before and after that.
TEST(ComputePoolTest, ServesCallersWhoseProcessorsAreBusy) {
  constexpr int kDisturbedLoops = 300;
  const std::vector<int> all = ThreadProcessors();
  if (all.size() < 2) GTEST_SKIP() << "needs two processors";
  std::atomic<bool> stop{false};
  std::vector<std::thread> busy;
  for (size_t i = 0; i < all.size(); ++i) {
    busy.emplace_back([&] {
      while (!stop.load()) continue;
    });
  }
  ComputePool pool;
  std::vector<std::thread> callers;
  std::atomic<int> disturbed{0};
  for (int i = 0; i < 2; ++i) {
    callers.emplace_back([&] {
      while (disturbed.load() < kDisturbedLoops) {
        if (pool.IsDisturbed()) ++disturbed;
        std::atomic<int64_t> sum{0};
        pool.Run(all.size(), 64, 1, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const absl::Time until = absl::Now() + absl::Microseconds(20);
            while (absl::Now() < until) continue;
            sum += i;
          }
        });
        EXPECT_EQ(sum.load(), 63 * 64 / 2);
      }
      EXPECT_EQ(ThreadProcessors(), all);
    });
  }
  for (std::thread& caller : callers) caller.join();
  stop = true;
  for (std::thread& thread : busy) thread.join();
}

TEST(ComputePoolTest, WorkersStayOnTheirPoolsProcessors) {
  const std::vector<int> all = ThreadProcessors();
  for (const int processor : {all.front(), all.back()}) {
    ComputePool pool({processor});
    const std::thread::id caller = std::this_thread::get_id();
    for (int loop = 0; loop < 3; ++loop) {
      RunOnTwoThreads(pool, [&] {
        const bool is_worker = std::this_thread::get_id() != caller;
        EXPECT_EQ(ThreadProcessors(),
                  is_worker ? std::vector<int>({processor}) : all);
      });
    }
  }
}

// All threads that may compute are busy, so no thread helps the second caller.
TEST(ComputePoolTest, ACallerComputesAloneWhileTheThreadsAreBusyElsewhere) {
  ComputePool pool;
  absl::BlockingCounter busy(2);
  absl::Notification end;
  std::thread other([&] {
    RunOnTwoThreads(pool, [&] {
      busy.DecrementCount();
      end.WaitForNotification();
    });
  });
  busy.Wait();
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<int64_t> done{0};
  for (int loop = 0; loop < 100; ++loop) {
    pool.Run(2, 100, 1, [&](int64_t begin, int64_t end) {
      EXPECT_EQ(std::this_thread::get_id(), caller);
      done += end - begin;
    });
  }
  EXPECT_EQ(done.load(), 100 * 100);
  end.Notify();
  other.join();
}

TEST(ComputePoolTest, EndsWithWorkersThatSpinOrSleep) {
  for (int i = 0; i < 20; ++i) {
    ComputePool pool;
    for (int loop = 0; loop < i % 3; ++loop) RunOnTwoThreads(pool, [] {});
  }
}

}  // namespace
}  // namespace sfmamba::ops
