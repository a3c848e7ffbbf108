#include "server/batching/waiting_tasks.h"

#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/server/batching/numbered_tasks.h"

namespace sfmamba::batching {
namespace {

constexpr int kMostKeys = 256;

TEST(WaitingTasksTest, FewKeysAreKeptForTheirArrivalsAlone) {
  WaitingTasks tasks;
  const auto add = [&tasks](int side) {
    BatchTask task = MakeTask(side, absl::InfiniteFuture(), side);
    task.submitted = At(0);
    const BatchKey key = task.key;
    const server::Priority line = task.priority;
    tasks.Add(std::move(task), key, line, At(side));
  };
  for (int side = 1; side <= kMostKeys; ++side) {
    add(side);
    // The task of the first key keeps waiting.
    if (side == 1) continue;
    const auto& line =
        tasks.keys().at(Key(side)).line(server::Priority::kNormal);
    tasks.Take(
        {Key(side), server::Priority::kNormal, line.tasks().begin()->first});
  }
  add(2);
  EXPECT_EQ(tasks.keys().size(), kMostKeys) << "one that is kept";
  add(kMostKeys + 1);
  EXPECT_EQ(tasks.keys().size(), 3) << "those with tasks";
  EXPECT_EQ(tasks.size(), 3);
  EXPECT_EQ(tasks.keys().at(Key(1)).size(), 1);
}

TEST(WaitingTasksTest, TellsWhichTasksOfALineAreOrderedUntilATime) {
  WaitingTasks tasks;
  for (const int order : {30, 20, 10, 20}) {
    BatchTask task = MakeTask(order);
    task.submitted = At(0);
    tasks.Add(std::move(task), Key(), server::Priority::kNormal, At(order));
  }
  const auto& line = tasks.keys().at(Key()).line(server::Priority::kNormal);
  EXPECT_EQ(line.CountUntil(At(9)), 0);
  EXPECT_EQ(line.CountUntil(At(10)), 1);
  EXPECT_EQ(line.CountUntil(At(19)), 1);
  EXPECT_EQ(line.CountUntil(At(20)), 3);
  EXPECT_EQ(line.CountUntil(At(29)), 3);
  EXPECT_EQ(line.CountUntil(At(30)), 4);
  EXPECT_EQ(line.OrderAfter(0), At(10));
  EXPECT_EQ(line.OrderAfter(2), At(20));
  EXPECT_EQ(line.OrderAfter(3), At(30));
}

TEST(WaitingTasksTest, ATaskMovesUpOnceFromItsTimeOnWhileOthersGoBefore) {
  WaitingTasks tasks;
  const auto add = [&tasks](server::Priority priority) {
    BatchTask task = MakeTask(1);
    task.priority = priority;
    task.submitted = At(0);
    task.promote_at = At(50);
    tasks.Add(std::move(task), Key(), priority, At(100));
  };
  // By class, the highest first.
  const auto counts = [&tasks] {
    std::vector<int> counts;
    for (const server::Priority priority : server::kPrioritiesInOrder) {
      counts.push_back(tasks.count(priority));
    }
    return counts;
  };
  using Counts = std::vector<int>;
  add(server::Priority::kLow);
  tasks.Promote(At(50));
  EXPECT_EQ(counts(), Counts({0, 0, 1})) << "no class goes before it";
  add(server::Priority::kNormal);
  tasks.Promote(At(49));
  EXPECT_EQ(counts(), Counts({0, 1, 1}));
  tasks.Promote(At(50));
  EXPECT_EQ(counts(), Counts({0, 2, 0}));
  add(server::Priority::kHigh);
  tasks.Promote(At(60));
  EXPECT_EQ(counts(), Counts({2, 1, 0})) << "the low one has moved up before";
}

}  // namespace
}  // namespace sfmamba::batching
