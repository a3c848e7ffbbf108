#include "model/ops/parallel.h"

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "ATen/Parallel.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "c10/core/InferenceMode.h"
#include "gtest/gtest.h"

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

// What is called once may use all threads.
TEST_F(ParallelTest, OneCallKeepsTheThreads) {
  ParallelFor(10, 10,
              [&](int64_t, int64_t) { EXPECT_EQ(at::get_num_threads(), 3); });
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
      // Each part waits for the other, so that two threads compute.
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

}  // namespace
}  // namespace sfmamba::ops
