#include "model/ops/affinity.h"

#include <sched.h>

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

}  // namespace
}  // namespace sfmamba::ops
