#include "server/batching/device_turns.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
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
  // Starts a thread that takes a turn, notes `name` and ends the turn. Returns
  // once it waits.
  void TakeLater(DeviceTurns& turns, DeviceTurns::Member& member,
                 server::Priority priority, int name,
                 absl::Duration took = absl::ZeroDuration(),
                 absl::Time order_by = absl::InfiniteFuture()) {
    const int waiting = turns.waiting();
    threads_.emplace_back([this, &member, priority, name, took, order_by] {
      const DeviceTurns::Turn turn =
          member.Take(priority, absl::Milliseconds(10), order_by);
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

// When a version replaces another, what is left of the other is older.
TEST_F(DeviceTurnsTest, OfAModelsBatchesTheMoreUrgentGoesFirst) {
  DeviceTurns turns(1, clock_);
  const auto old = turns.Join("m"), next = turns.Join("m");
  const absl::Duration took = absl::Milliseconds(10);
  const auto at = [this](int ms) { return now_ + absl::Milliseconds(ms); };
  auto turn = old->TryTake(server::Priority::kNormal, took, at(0));
  TakeLater(turns, *next, server::Priority::kNormal, 2, took, at(100));
  now_ += took;
  auto more =
      old->TryTake(server::Priority::kNormal, took, at(50), std::move(turn));
  ASSERT_TRUE(more.has_value());
  now_ += took;
  EXPECT_FALSE(
      old->TryTake(server::Priority::kNormal, took, at(150), std::move(more)));
  EXPECT_EQ(JoinAll(), std::vector<int>({2}));
}

TEST_F(DeviceTurnsTest, TwoVersionsGetNoMoreThanOne) {
  DeviceTurns turns(1, clock_);
  const auto first = turns.Join("m"), other = turns.Join("other");
  auto second = turns.Join("m");
  auto turn =
      turns.Join("x")->TryTake(server::Priority::kNormal, absl::Seconds(1));
  const absl::Duration took = absl::Milliseconds(10);
  for (DeviceTurns::Member* member : {&*first, &*second, &*first, &*second}) {
    TakeLater(turns, *member, server::Priority::kNormal, 1, took, now_);
  }
  for (int i = 0; i < 4; ++i) {
    TakeLater(turns, *other, server::Priority::kNormal, 2, took, now_);
  }
  turn.reset();
  const std::vector<int> order = JoinAll();
  EXPECT_EQ(std::count(order.begin(), order.begin() + 4, 1), 2);
  second.reset();
  auto last = other->TryTake(server::Priority::kNormal, took);
  TakeLater(turns, *other, server::Priority::kNormal, 2, took, now_);
  TakeLater(turns, *first, server::Priority::kNormal, 1, took, now_);
  now_ += 2 * took;
  last.reset();
  EXPECT_EQ(JoinAll(), std::vector<int>({1, 2})) << "the other is still known";
}

TEST_F(DeviceTurnsTest, NoMoreTurnsAreTakenThanTheDeviceHas) {
  DeviceTurns turns(2, clock_);
  const auto one = turns.Join();
  const auto other = turns.Join();
  auto first = one->TryTake(server::Priority::kNormal, absl::Seconds(1));
  auto second = other->TryTake(server::Priority::kLow, absl::Seconds(1));
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_FALSE(
      one->TryTake(server::Priority::kHigh, absl::Seconds(1)).has_value());
  first.reset();
  EXPECT_TRUE(
      one->TryTake(server::Priority::kHigh, absl::Seconds(1)).has_value());
  EXPECT_TRUE(
      one->TryTake(server::Priority::kHigh, absl::Seconds(1)).has_value())
      << "a turn ends with its object";
}

TEST_F(DeviceTurnsTest, ThoseWhoWaitGoByPriority) {
  DeviceTurns turns(1, clock_);
  const auto a = turns.Join(), b = turns.Join(), c = turns.Join();
  auto running = a->TryTake(server::Priority::kNormal, absl::Milliseconds(10));
  TakeLater(turns, *a, server::Priority::kLow, 3);
  TakeLater(turns, *b, server::Priority::kNormal, 2);
  TakeLater(turns, *c, server::Priority::kHigh, 1);
  running.reset();
  EXPECT_EQ(JoinAll(), std::vector<int>({1, 2, 3}));
}

TEST_F(DeviceTurnsTest, AnUrgentTaskHastensTheTurnOfItsModelOnly) {
  DeviceTurns turns(1, clock_);
  const auto a = turns.Join(), b = turns.Join(), c = turns.Join();
  auto running = c->TryTake(server::Priority::kNormal, absl::Milliseconds(10));
  TakeLater(turns, *a, server::Priority::kNormal, 1);
  TakeLater(turns, *b, server::Priority::kLow, 2);
  b->Hasten(server::Priority::kHigh);
  b->Hasten(server::Priority::kLow);  // It is more urgent already.
  running.reset();
  EXPECT_EQ(JoinAll(), std::vector<int>({2, 1}));
}

TEST_F(DeviceTurnsTest, AFloodedModelDoesNotKeepOthersWaiting) {
  DeviceTurns turns(1, clock_);
  const auto flooded = turns.Join(), other = turns.Join();
  auto running = flooded->TryTake(server::Priority::kNormal, absl::Seconds(1));
  for (int i = 0; i < 5; ++i)
    TakeLater(turns, *flooded, server::Priority::kNormal, i);
  TakeLater(turns, *other, server::Priority::kNormal, 9);
  now_ += absl::Seconds(1);
  running.reset();
  EXPECT_EQ(JoinAll(), std::vector<int>({9, 0, 1, 2, 3, 4}));
}

// A batch is charged to its model from its start, by its expected duration.
TEST_F(DeviceTurnsTest, ABatchThatRunsIsAModelsTurn) {
  DeviceTurns turns(2, clock_);
  const auto a = turns.Join(), b = turns.Join(), c = turns.Join();
  const auto running =
      a->TryTake(server::Priority::kNormal, absl::Milliseconds(10));
  auto other = c->TryTake(server::Priority::kNormal, absl::Milliseconds(10));
  TakeLater(turns, *a, server::Priority::kNormal, 1);
  TakeLater(turns, *b, server::Priority::kNormal, 2);
  other.reset();
  EXPECT_EQ(JoinAll(), std::vector<int>({2, 1}));
}

// One batch after another of 3 ms, of a model beside one that has just had 30.
TEST_F(DeviceTurnsTest, ShortBatchesGetAsMuchTimeAsLongOnes) {
  DeviceTurns turns(1, clock_);
  const auto brief = turns.Join(), lengthy = turns.Join();
  const auto cost = absl::Milliseconds(3);
  {
    const auto before =
        lengthy->TryTake(server::Priority::kNormal, absl::Milliseconds(30));
    now_ += absl::Milliseconds(30);
  }
  std::optional<DeviceTurns::Turn> turn(
      brief->TryTake(server::Priority::kNormal, cost));
  TakeLater(turns, *lengthy, server::Priority::kNormal, 1);
  int kept = 0;
  while (true) {
    now_ += cost;
    auto next = brief->TryTake(server::Priority::kNormal, cost,
                               absl::InfiniteFuture(), std::move(turn));
    turn.reset();
    if (!next.has_value()) break;
    turn.emplace(*std::move(next));
    ++kept;
  }
  EXPECT_EQ(kept, 9);
  EXPECT_EQ(JoinAll(), std::vector<int>({1}));
  EXPECT_TRUE(brief->TryTake(server::Priority::kNormal, cost).has_value());
}

TEST_F(DeviceTurnsTest, AReturnedTurnCostsNothing) {
  DeviceTurns turns(1, clock_);
  const auto a = turns.Join(), b = turns.Join();
  for (int i = 0; i < 10; ++i) {
    auto turn = a->TryTake(server::Priority::kNormal, absl::Seconds(5));
    now_ += absl::Seconds(5);
    turn->Return();
  }
  auto running = b->TryTake(server::Priority::kNormal, absl::Seconds(1));
  TakeLater(turns, *b, server::Priority::kNormal, 2);
  TakeLater(turns, *a, server::Priority::kNormal, 1);
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
