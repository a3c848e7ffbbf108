#include "server/shares/fair_shares.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "server/shares/priority.h"

namespace sfmamba::server {
namespace {

constexpr absl::Duration kCost = absl::Milliseconds(10);

// Serves the next of the waiting classes `services` times. Returns how often
// each class was served.
std::map<Priority, int> Serve(FairShares<Priority>* shares,
                              const std::vector<Priority>& waiting,
                              int services) {
  std::map<Priority, int> served;
  for (int i = 0; i < services; ++i) {
    const Priority next = *std::min_element(
        waiting.begin(), waiting.end(), [&](Priority a, Priority b) {
          return shares->StartOf(a) < shares->StartOf(b);
        });
    shares->AdvanceTo(shares->StartOf(next));
    shares->Charge(next, kCost, next);
    ++served[next];
  }
  return served;
}

TEST(FairSharesTest, FlowsThatWaitShareEightToThreeToOne) {
  FairShares<Priority> shares;
  auto served = Serve(
      &shares, {Priority::kHigh, Priority::kNormal, Priority::kLow}, 1200);
  EXPECT_NEAR(served[Priority::kHigh], 800, 2);
  EXPECT_NEAR(served[Priority::kNormal], 300, 2);
  EXPECT_NEAR(served[Priority::kLow], 100, 2);
}

TEST(FairSharesTest, AFlowThatDidNotWaitSavesNothingUp) {
  FairShares<Priority> shares;
  Serve(&shares, {Priority::kHigh}, 10'000);
  auto served = Serve(&shares, {Priority::kHigh, Priority::kLow}, 90);
  EXPECT_NEAR(served[Priority::kHigh], 80, 2);
  EXPECT_NEAR(served[Priority::kLow], 10, 2);
}

TEST(FairSharesTest, TheVirtualTimeNeverFalls) {
  FairShares<int> shares;
  shares.AdvanceTo(kCost);
  shares.AdvanceTo(kCost / 2);
  EXPECT_EQ(shares.now(), kCost);
  EXPECT_EQ(shares.StartOf(7), kCost);
}

TEST(FairSharesTest, AServiceIsChargedAsItsPriorityWeighs) {
  FairShares<int> shares;
  EXPECT_EQ(shares.Charge(7, 8 * kCost, Priority::kHigh), kCost);
  EXPECT_EQ(shares.Charge(7, 3 * kCost, Priority::kNormal), 2 * kCost);
  EXPECT_EQ(shares.StartOf(7), 2 * kCost);
  EXPECT_EQ(shares.StartOf(8), absl::ZeroDuration());
}

TEST(FairSharesTest, ACorrectionCountsThoughTimeHasGoneOn) {
  FairShares<int> shares;
  shares.Charge(7, kCost, Priority::kLow);
  shares.AdvanceTo(2 * kCost);
  shares.Correct(7, 4 * kCost, Priority::kLow);
  EXPECT_EQ(shares.StartOf(7), 5 * kCost);
  shares.Correct(7, -4 * kCost, Priority::kLow);
  EXPECT_EQ(shares.StartOf(7), 2 * kCost);
}

TEST(FairSharesTest, AForgottenFlowStartsAsANewOne) {
  FairShares<int> shares;
  shares.Charge(7, kCost, Priority::kLow);
  shares.Forget(7);
  shares.Correct(7, kCost, Priority::kLow);
  EXPECT_EQ(shares.StartOf(7), absl::ZeroDuration());
}

}  // namespace
}  // namespace sfmamba::server
