#include "server/batching/client_turns.h"

#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace sfmamba::batching {
namespace {

using server::Priority;

constexpr absl::Duration kBatch = absl::Milliseconds(10);

Urgency At(int ms, uint64_t number = 1) {
  return {absl::UnixEpoch() + absl::Milliseconds(ms), number};
}

LineId Line(int queue, Priority priority = Priority::kNormal) {
  return {{queue, queue}, priority, {}};
}

// Simulates a device. A flow consists of one client's images in one line. A
// line contains the images with the same queue, priority class and batch key
// (see LineId). Each flow always has another image waiting.
class Device {
 public:
  struct Flow {
    std::string client;
    LineId line;
    absl::Duration cost;
    int span = 1000;      // Milliseconds until the deadline.
    absl::Duration took;  // The real duration, or zero if equal to `cost`.
    absl::Duration served;
  };

  void Add(const Flow& flow) {
    flows_.push_back(flow);
    Wait(flow);
  }
  // Runs one batch and returns the flow that had the turn.
  const Flow& Run() {
    std::vector<QueueId> queues;
    for (const Flow& flow : flows_) queues.push_back(flow.line.queue);
    const QueueId queue = queues[turns.Next(queues)];
    std::vector<Flow*> candidates;
    for (const Priority priority : turns.ClassesInTurn()) {
      ClientTurns::Filling filling(&turns, {queue, priority, {}}, kBatch);
      const std::string* client = filling.Next();
      if (client == nullptr) continue;
      for (Flow& flow : flows_) {
        const bool is_next = flow.client == *client &&
                             flow.line.queue == queue &&
                             flow.line.priority == priority;
        if (is_next) candidates.push_back(&flow);
      }
      break;
    }
    Flow& flow = *candidates.at(0);
    BatchCharge charge;
    charge.model = queue.model;
    charge.parts = {{flow.line.priority, flow.client, 1}};
    charge.cost = flow.cost;
    turns.Charge(&charge);
    const bool is_wrong = flow.took > absl::ZeroDuration();
    const absl::Duration took = is_wrong ? flow.took : flow.cost;
    turns.Correct(charge, took);
    now_ += took;
    flow.served += took;
    Wait(flow);
    return flow;
  }
  std::vector<double> SharesAfter(absl::Duration time) {
    while (now_ < time) Run();
    std::vector<double> shares;
    for (const Flow& flow : flows_) {
      shares.push_back(absl::FDivDuration(flow.served, now_));
    }
    return shares;
  }

  ClientTurns turns;

 private:
  void Wait(const Flow& flow) {
    turns.SetFirst(flow.line, flow.client,
                   At(absl::ToInt64Milliseconds(now_) + flow.span, ++arrivals_),
                   flow.cost);
  }

  std::vector<Flow> flows_;
  absl::Duration now_;
  uint64_t arrivals_ = 0;
};

TEST(ClientTurnsTest, ClassesGetTheirSharesOfTheTimeWhateverTheirBatchesCost) {
  Device device;
  device.Add({"a", Line(0, Priority::kHigh), absl::Milliseconds(2)});
  device.Add({"a", Line(1, Priority::kNormal), absl::Milliseconds(40)});
  device.Add({"b", Line(2, Priority::kLow), absl::Milliseconds(7)});
  const std::vector<double> shares = device.SharesAfter(absl::Seconds(60));
  EXPECT_NEAR(shares[0], 8.0 / 12, 0.01);
  EXPECT_NEAR(shares[1], 3.0 / 12, 0.01);
  EXPECT_NEAR(shares[2], 1.0 / 12, 0.01);
}

TEST(ClientTurnsTest, ClientsGetTheSameTimeOverAllModels) {
  Device device;
  device.Add({"one", Line(0), absl::Milliseconds(5), 30'000});
  for (int model = 0; model < 4; ++model) {
    device.Add({"many", Line(model), absl::Milliseconds(3 + 9 * model), 10});
  }
  EXPECT_NEAR(device.SharesAfter(absl::Seconds(60))[0], 0.5, 0.01);
}

TEST(ClientTurnsTest, ModelsOfAClientGetTheSameTime) {
  Device device;
  for (int ms : {1, 5, 90}) {
    device.Add({"a", Line(ms), absl::Milliseconds(ms), 10 * ms});
  }
  for (const double share : device.SharesAfter(absl::Seconds(60))) {
    EXPECT_NEAR(share, 1.0 / 3, 0.01);
  }
}

TEST(ClientTurnsTest, WhatABatchTookCountsNotWhatWasExpected) {
  Device device;
  device.Add(
      {"liar", Line(0), absl::Milliseconds(1), 10, absl::Milliseconds(30)});
  device.Add({"honest", Line(1), absl::Milliseconds(30)});
  EXPECT_NEAR(device.SharesAfter(absl::Seconds(60))[1], 0.5, 0.01);
}

TEST(ClientTurnsTest, ClientsWithinABatchOfEachOtherGoByDeadline) {
  ClientTurns turns;
  turns.SetFirst(Line(0), "a", At(200, 1), kBatch);
  turns.SetFirst(Line(0), "b", At(100, 2), kBatch);
  turns.SetFirst(Line(0), "c", At(300, 3), kBatch);
  ClientTurns::Filling filling(&turns, Line(0), kBatch / 2);
  const auto pick = [&filling](std::optional<Urgency> first) {
    const std::string client = *filling.Next();
    filling.Pick(first);
    return client;
  };
  EXPECT_EQ(pick(At(110, 4)), "b");
  EXPECT_EQ(pick(At(120, 5)), "b") << "it had half a batch";
  EXPECT_EQ(pick(std::nullopt), "a") << "the other is a batch ahead";
  EXPECT_EQ(pick(std::nullopt), "c");
  EXPECT_EQ(pick(std::nullopt), "b");
  EXPECT_EQ(filling.Next(), nullptr);
}

TEST(ClientTurnsTest, PicksHaveNoEffectOnTheTurns) {
  ClientTurns turns;
  turns.SetFirst(Line(0), "a", At(200, 1), kBatch);
  turns.SetFirst(Line(0), "b", At(100, 2), kBatch);
  for (int i = 0; i < 3; ++i) {
    ClientTurns::Filling filling(&turns, Line(0), kBatch);
    EXPECT_EQ(*filling.Next(), "b");
    filling.Pick(At(150, 3));
    EXPECT_EQ(*filling.Next(), "a");
    filling.Pick(std::nullopt);
  }
  EXPECT_EQ(turns.active(), 2);
}

// A client that starts to wait later gets its turns, but no turns for the time
// before.
TEST(ClientTurnsTest, IdleTimeIsNotSavedUp) {
  Device device;
  device.Add({"a", Line(0), kBatch});
  device.Add({"b", Line(0), kBatch});
  device.SharesAfter(absl::Seconds(60));
  device.Add({"late", Line(0), kBatch, 1});
  std::map<std::string, int> ran;
  for (int i = 0; i < 30; ++i) ++ran[device.Run().client];
  EXPECT_NEAR(ran["late"], 10, 1);
}

TEST(ClientTurnsTest, AnOverdueClientGoesBeforeEarlierDeadlines) {
  Device device;
  device.Add({"patient", Line(0), kBatch, 30'000});
  for (int i = 0; i < 5; ++i) {
    device.Add({"urgent " + std::to_string(i), Line(0), kBatch, 20});
  }
  for (int turn = 0; turn < 10; ++turn) {
    int before = 0;
    while (device.Run().client != "patient") ++before;
    EXPECT_LE(before, 6 + 2);
  }
}

TEST(ClientTurnsTest, EqualClassesGoByPriority) {
  ClientTurns turns;
  turns.SetFirst(Line(0, Priority::kLow), "a", At(1), kBatch);
  turns.SetFirst(Line(1, Priority::kNormal), "a", At(3), kBatch);
  turns.SetFirst(Line(2, Priority::kNormal), "a", At(2), kBatch);
  EXPECT_EQ(turns.Next({{0, 0}, {1, 1}, {2, 2}}), 2);
  EXPECT_EQ(turns.Next({{0, 0}, {1, 1}}), 1);
}

// Compares the choice of ClientTurns with a search over all clients.
TEST(ClientTurnsTest, TheEarliestDeadlineInTheWindowIsFound) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 50; ++trial) {
    ClientTurns turns;
    std::map<std::string, absl::Duration> tags;
    std::map<std::string, Urgency> first;
    const int clients = 1 + random() % 40;
    for (int i = 0; i < clients; ++i) {
      const std::string name = std::to_string(i);
      first[name] = At(random() % 50, i);
      turns.SetFirst(Line(0), name, first[name], kBatch);
    }
    for (const auto& [name, urgency] : first) {
      BatchCharge charge;
      charge.parts = {{Priority::kNormal, name, 1}};
      charge.cost = tags[name] = absl::Milliseconds(1 + random() % 25);
      turns.Charge(&charge);
    }
    absl::Duration now, least = absl::InfiniteDuration();
    for (const auto& [name, tag] : tags) {
      now += tag / clients;
      least = std::min(least, tag);
    }
    std::string expected;
    for (const auto& [name, tag] : tags) {
      const bool counts =
          now - least >= kBatch ? tag == least : tag < least + kBatch;
      if (!counts) continue;
      const bool is_overdue = now - least >= kBatch;
      if (expected.empty() ||
          (is_overdue ? first[name].second < first[expected].second
                      : first[name] < first[expected])) {
        expected = name;
      }
    }
    EXPECT_EQ(*ClientTurns::Filling(&turns, Line(0), kBatch).Next(), expected)
        << trial;
  }
}

}  // namespace
}  // namespace sfmamba::batching
