#include "server/batching/turn_order.h"

#include <map>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace sfmamba::batching {
namespace {

using server::Priority;

// A device that is never idle: flows always have one more batch that waits.
class Device {
 public:
  struct Flow {
    TurnWish wish;
    absl::Duration took;  // If not the wish's cost.
    absl::Duration served;
  };

  int Add(int member, server::Priority priority, absl::Duration cost) {
    Flow flow;
    flow.wish = {member, priority, cost, ++arrivals_};
    flow.took = cost;
    flows_.push_back(flow);
    return static_cast<int>(flows_.size()) - 1;
  }
  void Remove(int flow) { flows_.erase(flows_.begin() + flow); }

  // Returns whose turn it was.
  int Run() {
    std::vector<TurnWish> wishes;
    for (const Flow& flow : flows_) wishes.push_back(flow.wish);
    const int next = order.Next(wishes);
    Flow& flow = flows_[next];
    order.Start(flow.wish);
    order.End(flow.wish, flow.took);
    flow.served += flow.took;
    flow.wish.arrival = ++arrivals_;
    return next;
  }
  void RunFor(absl::Duration time) {
    const absl::Duration until = served() + time;
    while (served() < until) Run();
  }

  absl::Duration served() const {
    absl::Duration all;
    for (const Flow& flow : flows_) all += flow.served;
    return all;
  }
  double share(int flow) const {
    return absl::FDivDuration(flows_[flow].served, served());
  }
  Flow& flow(int i) { return flows_[i]; }

  TurnOrder order;

 private:
  std::vector<Flow> flows_;
  uint64_t arrivals_ = 0;
};

TEST(TurnOrderTest, ClassesGetTheirSharesOfTheTimeWhateverTheirBatchesCost) {
  Device device;
  const int high =
      device.Add(0, server::Priority::kHigh, absl::Milliseconds(2));
  const int normal =
      device.Add(1, server::Priority::kNormal, absl::Milliseconds(40));
  const int low = device.Add(2, server::Priority::kLow, absl::Milliseconds(7));
  device.RunFor(absl::Seconds(60));
  EXPECT_NEAR(device.share(high), 8.0 / 12, 0.01);
  EXPECT_NEAR(device.share(normal), 3.0 / 12, 0.01);
  EXPECT_NEAR(device.share(low), 1.0 / 12, 0.01);
}

TEST(TurnOrderTest, ModelsOfOneClassGetTheSameTime) {
  Device device;
  for (int ms : {1, 5, 90}) {
    device.Add(ms, server::Priority::kNormal, absl::Milliseconds(ms));
  }
  device.RunFor(absl::Seconds(60));
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(device.share(i), 1.0 / 3, 0.01);
}

TEST(TurnOrderTest, WhatATurnTookCountsNotWhatWasExpected) {
  Device device;
  const int liar =
      device.Add(0, server::Priority::kNormal, absl::Milliseconds(1));
  const int honest =
      device.Add(1, server::Priority::kNormal, absl::Milliseconds(30));
  device.flow(liar).took = absl::Milliseconds(30);
  device.RunFor(absl::Seconds(60));
  EXPECT_NEAR(device.share(honest), 0.5, 0.01);
}

TEST(TurnOrderTest, WhoComesSeldomWaitsForNoSecondTurnOfAnother) {
  for (server::Priority priority :
       {server::Priority::kHigh, server::Priority::kNormal,
        server::Priority::kLow}) {
    Device device;
    for (int i = 0; i < 3; ++i) {
      device.Add(i, server::Priority::kNormal, absl::Milliseconds(50));
    }
    device.RunFor(absl::Seconds(10));
    const int seldom = device.Add(3, priority, absl::Milliseconds(1));
    std::map<int, int> turns;
    for (int next = device.Run(); next != seldom; next = device.Run()) {
      EXPECT_EQ(++turns[next], 1) << "of model " << next;
    }
    if (priority == server::Priority::kHigh) {
      EXPECT_TRUE(turns.empty());
    }
  }
}

TEST(TurnOrderTest, IdleTimeIsNotSavedUp) {
  Device device;
  device.Add(0, server::Priority::kNormal, absl::Milliseconds(10));
  const int late =
      device.Add(1, server::Priority::kNormal, absl::Milliseconds(10));
  device.RunFor(absl::Seconds(1));
  device.Remove(late);
  device.RunFor(absl::Seconds(60));
  device.Add(1, server::Priority::kNormal, absl::Milliseconds(10));
  const absl::Duration before = device.flow(0).served;
  device.RunFor(absl::Seconds(1));
  EXPECT_NEAR(absl::ToDoubleSeconds(device.flow(0).served - before), 0.5, 0.05);
}

TEST(TurnOrderTest, NoneStarves) {
  std::mt19937 random(1);
  Device device;
  for (int i = 0; i < 12; ++i) {
    device.Add(i / 3, static_cast<server::Priority>(i % 3),
               absl::Milliseconds(1 + random() % 100));
  }
  device.RunFor(absl::Seconds(300));
  for (int i = 0; i < 12; ++i) {
    const double weight = server::kPriorityShares[i % 3];
    EXPECT_NEAR(device.share(i), weight / 48, 0.01) << i;
  }
}

TEST(TurnOrderTest, EqualWishesGoByPriorityThenArrival) {
  TurnOrder order;
  TurnWish low{0, server::Priority::kLow, absl::Seconds(1), 1};
  TurnWish normal{1, server::Priority::kNormal, absl::Seconds(1), 3};
  TurnWish earlier{2, server::Priority::kNormal, absl::Seconds(1), 2};
  EXPECT_EQ(order.Next({low, normal, earlier}), 2);
  EXPECT_EQ(order.Next({low, normal}), 1);
}

TEST(TurnOrderTest, AModelsFirstWishSaysWhenItCame) {
  TurnOrder order;
  const auto wish = [](int model, uint64_t arrival) {
    return TurnWish{model, server::Priority::kNormal, absl::Seconds(1),
                    arrival};
  };
  EXPECT_EQ(order.Next({wish(0, 2), wish(1, 3), wish(1, 1)}), 2);
}

TEST(TurnOrderTest, ARemovedModelIsForgotten) {
  TurnOrder order;
  const TurnWish gone{0, server::Priority::kNormal, absl::Seconds(9), 1};
  order.Start(gone);
  order.Remove(0);
  order.End(gone, absl::Seconds(9));
  const TurnWish same{0, server::Priority::kNormal, absl::Seconds(1), 2};
  const TurnWish other{1, server::Priority::kNormal, absl::Seconds(1), 3};
  EXPECT_EQ(order.Next({other, same}), 1);
}

}  // namespace
}  // namespace sfmamba::batching
