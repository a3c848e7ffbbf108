#include "server/image/memory_budget.h"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/testing/patience.h"

namespace sfmamba::image {
namespace {

TEST(MemoryBudgetTest, SharesNeverExceedIt) {
  MemoryBudget budget(10);
  std::atomic<int> held{0};
  std::atomic<int> most{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 1000; ++j) {
        const MemoryBudget::Share share(&budget, 4);
        const int now = held.fetch_add(4) + 4;
        int seen = most.load();
        while (now > seen && !most.compare_exchange_weak(seen, now)) {
        }
        held.fetch_sub(4);
      }
    });
  }
  for (std::thread& thread : threads) Join(thread, "a share of the memory");
  EXPECT_LE(most.load(), 8);
}

TEST(MemoryBudgetTest, WhatIsLargerThanAllOfItGetsAllOfIt) {
  MemoryBudget budget(10);
  TimeLimit limit("all of the budget");
  { const MemoryBudget::Share share(&budget, 1000); }
  const MemoryBudget::Share all(&budget, 10);
}

}  // namespace
}  // namespace sfmamba::image
