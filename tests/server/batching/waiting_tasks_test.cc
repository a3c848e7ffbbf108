#include "server/batching/waiting_tasks.h"

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/batching/reservation.h"
#include "tests/server/batching/numbered_tasks.h"

namespace sfmamba::batching {
namespace {

constexpr int kMostKeys = 256;

TEST(WaitingTasksTest, FewKeysAreKeptForTheirArrivalsAlone) {
  WaitingTasks tasks;
  const auto add = [&tasks](int side) {
    BatchTask task = MakeTask(side, absl::InfiniteFuture(), side);
    task.submitted = At(0);
    tasks.Add(std::move(task), At(side));
  };
  for (int side = 1; side <= kMostKeys; ++side) {
    add(side);
    // Only the task of the first key stays in the queue.
    if (side == 1) continue;
    const auto& line =
        tasks.keys().at(Key(side)).line(server::Priority::kNormal);
    tasks.Take(
        {Key(side), server::Priority::kNormal, line.order().begin()->first});
  }
  add(2);
  EXPECT_EQ(tasks.keys().size(), kMostKeys) << "one that is kept";
  add(kMostKeys + 1);
  EXPECT_EQ(tasks.keys().size(), 3) << "those with tasks";
  EXPECT_EQ(tasks.size(), 3);
  EXPECT_EQ(tasks.keys().at(Key(1)).size(), 1);
}

TEST(WaitingTasksTest, KnowsTheTasksOfEachClient) {
  QueueRoom room({100, 1000});
  WaitingTasks tasks;
  std::vector<WaitingTasks::TaskId> ids;
  for (const auto& [order, client] :
       {std::pair(30, "a"), {20, "b"}, {10, "a"}, {20, "b"}}) {
    BatchTask task = MakeTask(order);
    task.submitted = At(0);
    task.reservation = *room.Take(1, 0, client);
    ids.push_back(tasks.Add(std::move(task), At(order)));
  }
  const auto& line = tasks.keys().at(Key()).line(server::Priority::kNormal);
  const auto orders = [&line](const std::string& client) {
    std::vector<int> orders;
    for (const auto& [urgency, task] : line.Of(client)) {
      orders.push_back(Id(task));
    }
    return orders;
  };
  EXPECT_EQ(orders("a"), std::vector<int>({10, 30}));
  EXPECT_EQ(orders("b"), std::vector<int>({20, 20}));
  EXPECT_EQ(orders("c"), std::vector<int>());
  EXPECT_EQ(Id(tasks.Take(ids[2])), 10);
  EXPECT_EQ(orders("a"), std::vector<int>({30}));
  EXPECT_EQ(Id(*line.order().begin()->second), 20);
  tasks.Take(ids[0]);
  EXPECT_EQ(line.clients().size(), 1);
}

}  // namespace
}  // namespace sfmamba::batching
