#include "server/batching/device_turns.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "gtest/gtest.h"
#include "tests/testing/patience.h"

namespace sfmamba::batching {
namespace {

using server::Priority;

class DeviceTurnsTest : public testing::Test {
 protected:
  // Starts a thread that takes a turn, records `name` and ends the turn.
  // Returns when the thread waits for the turn.
  void TakeLater(DeviceTurns& turns, DeviceTurns::Member& member,
                 server::Priority priority, int name,
                 absl::Duration took = absl::ZeroDuration()) {
    const int waiting = turns.waiting();
    threads_.emplace_back([this, &member, priority, name, took] {
      const DeviceTurns::Turn turn =
          member.Take(priority, absl::Milliseconds(10));
      now_ += took;
      absl::MutexLock lock(&mu_);
      order_.push_back(name);
    });
    WaitUntil([&] { return turns.waiting() > waiting; }, "a thread that waits");
  }
  std::vector<int> JoinAll() {
    for (std::thread& thread : threads_) Join(thread, "a turn");
    threads_.clear();
    absl::MutexLock lock(&mu_);
    return std::exchange(order_, {});
  }

  absl::Time now_ = absl::UnixEpoch();
  const DeviceTurns::Clock clock_ = [this] { return now_; };
  std::vector<std::thread> threads_;
  absl::Mutex mu_;
  std::vector<int> order_ ABSL_GUARDED_BY(mu_);
};

// Adds a waiting image to the queue. `deadline` is in milliseconds.
void Wait(const DeviceTurns::Member& queue, const std::string& client,
          int deadline, server::Priority priority = Priority::kNormal) {
  queue.With([&](ClientTurns& turns) {
    turns.SetFirst({queue.queue(), priority, {}}, client,
                   {absl::UnixEpoch() + absl::Milliseconds(deadline), 1},
                   absl::Milliseconds(10));
  });
}

TEST_F(DeviceTurnsTest, OfAClientsQueuesTheMoreUrgentGoesFirst) {
  DeviceTurns turns(1, clock_);
  const auto old = turns.Join("m"), next = turns.Join("m");
  Wait(*old, "a", 50);
  Wait(*next, "a", 100);
  std::optional<DeviceTurns::Turn> turn(old->Take());
  std::thread waiter([&] { const auto taken = next->Take(); });
  WaitUntil([&] { return turns.waiting() == 1; }, "a thread that waits");
  auto more = old->TryTake(std::move(turn));
  EXPECT_TRUE(more.has_value());
  Wait(*old, "a", 150);
  auto last = old->TryTake(std::move(more));
  EXPECT_FALSE(last.has_value());
  Join(waiter, "a turn");
}

TEST_F(DeviceTurnsTest, AnImageThatComesWhileItsQueueWaitsBringsItForward) {
  DeviceTurns turns(1, clock_);
  const auto a = turns.Join(), b = turns.Join();
  std::optional<DeviceTurns::Turn> busy(
      turns.Join()->Take(Priority::kNormal, absl::Milliseconds(10)));
  Wait(*a, "x", 50);
  Wait(*b, "x", 60, Priority::kLow);
  std::vector<int> order;
  std::thread first([&] {
    const auto turn = a->Take();
    order.push_back(1);
  });
  std::thread second([&] {
    const auto turn = b->Take();
    order.push_back(2);
  });
  WaitUntil([&] { return turns.waiting() == 2; }, "both");
  Wait(*b, "x", 70, Priority::kHigh);
  busy.reset();
  Join(first, "a turn");
  Join(second, "a turn");
  EXPECT_EQ(order, std::vector<int>({2, 1}));
}

TEST_F(DeviceTurnsTest, NoMoreTurnsAreTakenThanTheDeviceHas) {
  DeviceTurns turns(2, clock_);
  const auto one = turns.Join();
  const auto other = turns.Join();
  std::optional<DeviceTurns::Turn> first(
      one->Take(server::Priority::kNormal, absl::Seconds(1)));
  std::optional<DeviceTurns::Turn> second(
      other->Take(server::Priority::kLow, absl::Seconds(1)));
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_FALSE(one->TryTake().has_value());
  first.reset();
  EXPECT_TRUE(one->TryTake().has_value());
  EXPECT_TRUE(one->TryTake().has_value()) << "a turn ends with its object";
}

TEST_F(DeviceTurnsTest, ThoseWhoWaitGoByPriority) {
  DeviceTurns turns(1, clock_);
  const auto a = turns.Join(), b = turns.Join(), c = turns.Join();
  std::optional<DeviceTurns::Turn> running(
      a->Take(server::Priority::kNormal, absl::Milliseconds(10)));
  TakeLater(turns, *a, server::Priority::kLow, 3);
  TakeLater(turns, *b, server::Priority::kNormal, 2);
  TakeLater(turns, *c, server::Priority::kHigh, 1);
  running.reset();
  EXPECT_EQ(JoinAll(), std::vector<int>({1, 2, 3}));
}

TEST_F(DeviceTurnsTest, AFloodedModelDoesNotKeepOthersWaiting) {
  DeviceTurns turns(1, clock_);
  const auto flooded = turns.Join(), other = turns.Join();
  std::optional<DeviceTurns::Turn> running(
      flooded->Take(server::Priority::kNormal, absl::Seconds(1)));
  for (int i = 0; i < 5; ++i)
    TakeLater(turns, *flooded, server::Priority::kNormal, i,
              absl::Milliseconds(10));
  TakeLater(turns, *other, server::Priority::kNormal, 9);
  now_ += absl::Seconds(1);
  running.reset();
  EXPECT_EQ(JoinAll(), std::vector<int>({0, 9, 1, 2, 3, 4}));
}

TEST_F(DeviceTurnsTest, AReturnedTurnCostsNothing) {
  DeviceTurns turns(1, clock_);
  const auto a = turns.Join(), b = turns.Join();
  for (int i = 0; i < 10; ++i) {
    std::optional<DeviceTurns::Turn> turn(
        a->Take(server::Priority::kNormal, absl::Seconds(5)));
    now_ += absl::Seconds(5);
    turn->Return();
  }
  std::optional<DeviceTurns::Turn> running(
      b->Take(server::Priority::kNormal, absl::Seconds(1)));
  TakeLater(turns, *a, server::Priority::kNormal, 1);
  TakeLater(turns, *b, server::Priority::kNormal, 2);
  now_ += absl::Seconds(1);
  running.reset();
  EXPECT_EQ(JoinAll(), std::vector<int>({1, 2}));
}

TEST_F(DeviceTurnsTest, ManyThreadsGetEachOfTheirTurns) {
  DeviceTurns turns(3);
  std::atomic<int> taken{0}, runs{0};
  std::vector<std::unique_ptr<DeviceTurns::Member>> members;
  for (int i = 0; i < 4; ++i) members.push_back(turns.Join());
  for (int i = 0; i < 12; ++i) {
    threads_.emplace_back([&, i] {
      for (int n = 0; n < 200; ++n) {
        const auto turn = members[i % 4]->Take(
            static_cast<server::Priority>(n % 3), absl::Microseconds(n));
        EXPECT_LE(++taken, 3);
        ++runs;
        --taken;
      }
    });
  }
  JoinAll();
  EXPECT_EQ(runs, 12 * 200);
  EXPECT_EQ(turns.waiting(), 0);
}

}  // namespace
}  // namespace sfmamba::batching
