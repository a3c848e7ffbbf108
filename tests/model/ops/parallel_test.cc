#include "model/ops/parallel.h"

#include <omp.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "ATen/Parallel.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/barrier.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "c10/core/InferenceMode.h"
#include "gtest/gtest.h"
#include "model/ops/affinity.h"

namespace sfmamba::ops {
namespace {

class ParallelTest : public testing::Test {
 protected:
  ParallelTest() { at::set_num_threads(3); }
  ~ParallelTest() override { at::set_num_threads(threads_); }

 private:
  const int threads_ = at::get_num_threads();
};

TEST_F(ParallelTest, LoopsAndOperatorsWithinALoopAreSerial) {
  std::atomic<int64_t> elements{0};
  ParallelFor(100, 1, [&](int64_t begin, int64_t end) {
    EXPECT_EQ(at::get_num_threads(), 1);
    const std::thread::id thread = std::this_thread::get_id();
    int calls = 0;
    ParallelFor(1000, 1, [&](int64_t, int64_t) {
      EXPECT_EQ(std::this_thread::get_id(), thread);
      ++calls;
    });
    EXPECT_EQ(calls, 1);
    elements += end - begin;
  });
  EXPECT_EQ(elements.load(), 100);
  EXPECT_EQ(at::get_num_threads(), 3);
}

// If a loop has only one call, this call may use all threads.
TEST_F(ParallelTest, OneCallKeepsTheThreads) {
  ParallelFor(10, 10,
              [&](int64_t, int64_t) { EXPECT_EQ(at::get_num_threads(), 3); });
}

TEST_F(ParallelTest, AThreadThatComputesAloneHasNoHelp) {
  std::thread alone([] {
    ComputeAlone();
    EXPECT_EQ(LoopThreads(), 1);
    EXPECT_EQ(at::get_num_threads(), 1);
    const std::thread::id thread = std::this_thread::get_id();
    int calls = 0;
    ParallelFor(100, 1, [&](int64_t, int64_t) {
      EXPECT_EQ(std::this_thread::get_id(), thread);
      ++calls;
    });
    EXPECT_EQ(calls, 1);
    {
      const OnProcessorGroup group({ThreadProcessors(), /*threads=*/2});
      const SerialOperators serial;
      EXPECT_EQ(LoopThreads(), 1) << "nor on a context's processors";
    }
    EXPECT_EQ(at::get_num_threads(), 1);
  });
  alone.join();
  EXPECT_EQ(LoopThreads(), 3);
}

TEST_F(ParallelTest, LoopsAreParallelAmongSerialOperators) {
  {
    const SerialOperators serial;
    EXPECT_EQ(at::get_num_threads(), 1);
    EXPECT_EQ(LoopThreads(), 3);
    absl::Notification second_part;
    std::atomic<int> parts{0};
    ParallelFor(2, 1, [&](int64_t, int64_t) {
      if (++parts == 2) second_part.Notify();
      EXPECT_EQ(LoopThreads(), 1);
      // Each part waits for the other, so two threads must compute.
      EXPECT_TRUE(second_part.WaitForNotificationWithTimeout(absl::Minutes(1)));
    });
    EXPECT_EQ(parts.load(), 2);
    EXPECT_EQ(LoopThreads(), 3);
    EXPECT_EQ(at::get_num_threads(), 1);
  }
  EXPECT_EQ(at::get_num_threads(), 3);
}

TEST_F(ParallelTest, PartsHaveOneSizeWhateverTheThreads) {
  for (const int threads : {1, 2, 7}) {
    at::set_num_threads(threads);
    std::vector<std::atomic<int>> sizes(23);
    ParallelParts(23, 5, [&](int64_t first, int64_t count) {
      EXPECT_TRUE(c10::InferenceMode::is_enabled());
      sizes[first] += count;
    });
    for (int i = 0; i < 23; ++i) {
      EXPECT_EQ(sizes[i].load(), i % 5 != 0 ? 0 : i == 20 ? 3 : 5) << i;
    }
  }
}

// Runs a loop of two parts. Each part waits until both have begun and then
// calls body(). So the loop needs two threads.
void RunOnTwoThreads(absl::FunctionRef<void()> body) {
  absl::Barrier barrier(2);
  ParallelFor(2, 1, [&](int64_t, int64_t) {
    barrier.Block();
    body();
  });
}

TEST_F(ParallelTest, AGroupsThreadsStayOnItsProcessors) {
  const std::vector<int> all = ThreadProcessors();
  for (const int processor : {all.front(), all.back()}) {
    const std::vector<int> own = {processor};
    {
      const OnProcessorGroup on_group({own, /*threads=*/2});
      EXPECT_EQ(LoopThreads(), 2);
      EXPECT_EQ(at::get_num_threads(), 2);
      EXPECT_EQ(ThreadProcessors(), own);
      const SerialOperators serial;
      EXPECT_EQ(LoopThreads(), 2);
      RunOnTwoThreads([&] { EXPECT_EQ(ThreadProcessors(), own); });
    }
    EXPECT_EQ(LoopThreads(), 3);
    EXPECT_EQ(at::get_num_threads(), 3);
    EXPECT_EQ(ThreadProcessors(), all);
    RunOnTwoThreads([&] { EXPECT_EQ(ThreadProcessors(), all); });
  }
}

TEST_F(ParallelTest, TheThreadsOfOperatorsStayOnTheirGroupsProcessors) {
  std::thread([] {
    // In a thread's first call of at::parallel_for(), libtorch sets the number
    // of threads for the thread's loops. The function is a template, so this
    // test contains its own copy, whose first call sets the number again. This
    // call is made here. Otherwise the call below would overwrite the number
    // from OnProcessorGroup.
    at::parallel_for(0, 1, 1, [](int64_t, int64_t) {});
    const std::vector<int> own = {ThreadProcessors().back()};
    const OnProcessorGroup on_group({own, /*threads=*/2});
    at::parallel_for(0, 2, 1, [&](int64_t, int64_t) {
      EXPECT_EQ(ThreadProcessors(), own);
      EXPECT_EQ(omp_get_num_threads(), 2);
    });
  }).join();
}

TEST_F(ParallelTest, GroupsComputeAtOnceWithThreadsOfTheirOwn) {
  const std::vector<int> all = ThreadProcessors();
  std::vector<std::thread> callers;
  std::vector<int64_t> sums(4);
  for (size_t i = 0; i < sums.size(); ++i) {
    callers.emplace_back([&all, &sum = sums[i], i] {
      const int threads = 1 + static_cast<int>(i);
      const OnProcessorGroup on_group({{all[i % all.size()]}, threads});
      for (int loop = 0; loop < 200; ++loop) {
        EXPECT_EQ(LoopThreads(), threads);
        std::atomic<int64_t> part_sum{0};
        ParallelFor(100, 1, [&](int64_t begin, int64_t end) {
          for (int64_t k = begin; k < end; ++k) part_sum += k;
        });
        sum += part_sum;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  for (const int64_t sum : sums) EXPECT_EQ(sum, 200 * 4950);
}

}  // namespace
}  // namespace sfmamba::ops
