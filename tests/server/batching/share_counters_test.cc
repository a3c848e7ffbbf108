#include "server/batching/share_counters.h"

#include <array>
#include <map>

#include "gtest/gtest.h"

namespace sfmamba::batching {
namespace {

constexpr absl::Duration kCost = absl::Milliseconds(10);
constexpr std::array<Priority, 3> kAll = {Priority::kHigh, Priority::kNormal,
                                          Priority::kLow};

// Serves whose turn it is among those that wait; returns how often each was.
std::map<Priority, int> Serve(ShareCounters* shares,
                              std::map<Priority, bool> waits, int batches) {
  std::map<Priority, int> served;
  for (int i = 0; i < batches; ++i) {
    for (const Priority priority : shares->Order()) {
      if (!waits[priority]) continue;
      shares->Charge(priority, kCost);
      ++served[priority];
      break;
    }
  }
  return served;
}

TEST(ShareCountersTest, TheHigherClassIsFirstAtFirst) {
  EXPECT_EQ(ShareCounters().Order(), kAll);
}

TEST(ShareCountersTest, ClassesThatWaitShareEightToThreeToOne) {
  ShareCounters shares;
  for (const Priority priority : kAll) shares.SetWaits(priority, true);
  const auto served = Serve(&shares,
                            {{Priority::kHigh, true},
                             {Priority::kNormal, true},
                             {Priority::kLow, true}},
                            1200);
  EXPECT_NEAR(served.at(Priority::kHigh), 800, 2);
  EXPECT_NEAR(served.at(Priority::kNormal), 300, 2);
  EXPECT_NEAR(served.at(Priority::kLow), 100, 2);
}

TEST(ShareCountersTest, AClassThatDidNotWaitSavesNothingUp) {
  ShareCounters shares;
  shares.SetWaits(Priority::kHigh, true);
  Serve(&shares, {{Priority::kHigh, true}}, 10'000);
  shares.SetWaits(Priority::kHigh, false);
  shares.SetWaits(Priority::kLow, true);
  shares.SetWaits(Priority::kHigh, true);
  const auto served =
      Serve(&shares, {{Priority::kHigh, true}, {Priority::kLow, true}}, 90);
  EXPECT_NEAR(served.at(Priority::kHigh), 80, 2);
  EXPECT_NEAR(served.at(Priority::kLow), 10, 2);
}

TEST(ShareCountersTest, AClassAloneGetsAll) {
  ShareCounters shares;
  shares.SetWaits(Priority::kLow, true);
  EXPECT_EQ(Serve(&shares, {{Priority::kLow, true}}, 10).at(Priority::kLow),
            10);
}

}  // namespace
}  // namespace sfmamba::batching
