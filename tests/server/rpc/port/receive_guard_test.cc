#include "server/rpc/port/receive_guard.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sfmamba::rpc {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

constexpr int64_t kMiB = 1 << 20;
// Limits that docs/serving.md names.
constexpr absl::Duration kMostWait = absl::Seconds(10);
constexpr int64_t kLeastProgress = 1 << 10;

class ReceiveGuardTest : public testing::Test {
 protected:
  using Traffic = std::vector<ReceiveGuard::Traffic>;

  // A look 20 ms after the last one.
  std::vector<std::string> Check(const Traffic& traffic) {
    now_ += absl::Milliseconds(20);
    return guard_.Check([&] { return traffic; }, now_);
  }

  int64_t held_ = 0;
  absl::Time now_ = absl::UnixEpoch();
  ReceiveGuard guard_{{/*most_bytes=*/100 * kMiB, [this] { return held_; }}};
};

TEST_F(ReceiveGuardTest, EndsNobodyBelowTheLimit) {
  EXPECT_THAT(Check({{"ipv4:1.1.1.1:1", 60 * kMiB}}), IsEmpty());
  EXPECT_THAT(
      Check({{"ipv4:1.1.1.1:1", 60 * kMiB}, {"ipv4:2.2.2.2:1", 40 * kMiB}}),
      IsEmpty());
}

TEST_F(ReceiveGuardTest, EndsTheLargestUntilTheRestFits) {
  EXPECT_THAT(Check({{"ipv4:1.1.1.1:1", 60 * kMiB},
                     {"ipv4:2.2.2.2:1", 70 * kMiB},
                     {"ipv4:3.3.3.3:1", 50 * kMiB},
                     {"ipv4:4.4.4.4:1", 10 * kMiB}}),
              UnorderedElementsAre("ipv4:2.2.2.2:1", "ipv4:1.1.1.1:1"));
}

// Many connections do not make the one of another address the largest.
TEST_F(ReceiveGuardTest, AnAddressCountsWithAllOfItsConnections) {
  EXPECT_THAT(Check({{"ipv6:%5B::1%5D:1", 30 * kMiB},
                     {"ipv6:%5B::1%5D:2", 31 * kMiB},
                     {"ipv4:2.2.2.2:1", 45 * kMiB}}),
              ElementsAre("ipv6:%5B::1%5D:2"));
}

TEST_F(ReceiveGuardTest, SmallOnesAreNeverEnded) {
  Traffic traffic;
  for (int i = 0; i < 200; ++i) {
    traffic.push_back({"ipv4:1.1.1.1:" + std::to_string(i), kMiB - 1});
  }
  EXPECT_THAT(Check(traffic), IsEmpty());
}

TEST_F(ReceiveGuardTest, AMebibyteIsNotSmall) {
  Traffic traffic;
  for (int i = 0; i < 101; ++i) {
    traffic.push_back({"ipv4:1.1.1.1:" + std::to_string(i), kMiB});
  }
  EXPECT_THAT(Check(traffic), SizeIs(1));
}

TEST_F(ReceiveGuardTest, WhatWasHandedOverIsNotInReception) {
  for (int i = 1; i <= 10; ++i) {
    EXPECT_THAT(Check({{"ipv4:1.1.1.1:1", i * 60 * kMiB}}), IsEmpty());
    guard_.HandedOver("ipv4:1.1.1.1:1", 60 * kMiB);
  }
}

// Its last bytes were measured after it had been handed over.
TEST_F(ReceiveGuardTest, WhatComesAfterItWasHandedOverIsNotInReception) {
  Check({{"ipv4:1.1.1.1:1", 20 * kMiB}});
  guard_.HandedOver("ipv4:1.1.1.1:1", 60 * kMiB);
  Check({{"ipv4:1.1.1.1:1", 20 * kMiB}});
  EXPECT_EQ(guard_.TakePeak().now, 0);
  EXPECT_THAT(Check({{"ipv4:1.1.1.1:1", 60 * kMiB}}), IsEmpty());
  EXPECT_EQ(guard_.TakePeak().now, 0);
}

// Each costs more on the wire than it holds, at most as much as is allowed for.
TEST_F(ReceiveGuardTest, ManySmallMessagesAreNoCreditForALargeOne) {
  for (int i = 0; i < 100'000; ++i) guard_.HandedOver("ipv4:1.1.1.1:1", 100);
  Check({{"ipv4:1.1.1.1:1", 100'000 * 200}});
  Check({{"ipv4:1.1.1.1:1", 100'000 * 200}});
  EXPECT_THAT(Check({{"ipv4:1.1.1.1:1", 100'000 * 200 + 101 * kMiB}}),
              ElementsAre("ipv4:1.1.1.1:1"));
}

TEST_F(ReceiveGuardTest, WhatIsHeldLeavesLessRoom) {
  held_ = 50 * kMiB;
  EXPECT_THAT(Check({{"ipv4:1.1.1.1:1", 51 * kMiB}}),
              ElementsAre("ipv4:1.1.1.1:1"));
}

TEST_F(ReceiveGuardTest, AnEndedConnectionCountsNoMore) {
  EXPECT_THAT(Check({{"ipv4:1.1.1.1:1", 101 * kMiB}}),
              ElementsAre("ipv4:1.1.1.1:1"));
  EXPECT_EQ(guard_.TakePeak().now, 0);
  EXPECT_THAT(Check({{"ipv4:1.1.1.1:2", 60 * kMiB}}), IsEmpty());
}

// A call that is reset while its message comes is not reported.
TEST_F(ReceiveGuardTest, WhatIsNeverHandedOverFades) {
  Check({{"ipv4:1.1.1.1:1", 60 * kMiB}});
  now_ += ReceiveGuard::kFading;
  EXPECT_THAT(Check({{"ipv4:1.1.1.1:1", 120 * kMiB}}), IsEmpty());
  EXPECT_NEAR(guard_.TakePeak().now, (60 + 60 * 0.368) * kMiB, kMiB);
}

// Deadlines pass while messages of 256 calls come.
TEST_F(ReceiveGuardTest, CallsThatAreResetLeaveNothingInReception) {
  Traffic traffic = {{"ipv4:1.1.1.1:1", 0, 256, 256, 0}};
  for (int i = 0; i < 100; ++i) {
    traffic[0].received += 10 * kMiB;
    traffic[0].failed += 100;
    EXPECT_THAT(Check(traffic), IsEmpty());
  }
  // 356 calls have brought 10 MiB in each look since they began.
  EXPECT_NEAR(guard_.TakePeak().now, 26 * kMiB + 256 * ReceiveGuard::kCallBytes,
              kMiB);
}

TEST_F(ReceiveGuardTest, CallsThatWereResetBeforeAreNoCredit) {
  Traffic traffic = {{"ipv4:1.1.1.1:1", 0, 10, 10, 1000}};
  Check(traffic);
  traffic[0].received += 100 * kMiB;
  EXPECT_THAT(Check(traffic), ElementsAre("ipv4:1.1.1.1:1"));
}

TEST_F(ReceiveGuardTest, ANewConnectionMayHaveTheNameOfAnOld) {
  Check({{"ipv4:1.1.1.1:1", 60 * kMiB}});
  EXPECT_THAT(Check({{"ipv4:1.1.1.1:1", 50 * kMiB}}), IsEmpty());
  EXPECT_EQ(guard_.TakePeak().now, 50 * kMiB);
}

TEST_F(ReceiveGuardTest, OpenCallsTakeMemory) {
  EXPECT_THAT(Check({{"ipv4:1.1.1.1:1", 0, /*calls=*/1000},
                     {"ipv4:1.1.1.1:2", 0, /*calls=*/2000},
                     {"ipv4:2.2.2.2:1", 60 * kMiB}}),
              ElementsAre("ipv4:2.2.2.2:1"));
  EXPECT_EQ(guard_.TakePeak().now, 3000 * ReceiveGuard::kCallBytes);
}

// gRPC ends them one after the other, so their memory is not free at once.
TEST_F(ReceiveGuardTest, CallsOfAClosedConnectionFade) {
  Check({{"ipv4:1.1.1.1:1", 0, /*calls=*/1000}});
  Check({});
  EXPECT_EQ(guard_.TakePeak().now, 1000 * ReceiveGuard::kCallBytes);
  now_ += ReceiveGuard::kLeaving;
  // They leave no less room for others.
  EXPECT_THAT(Check({{"ipv4:1.1.1.1:2", 99 * kMiB}}), IsEmpty());
  EXPECT_LT(guard_.TakePeak().now, 99 * kMiB + 400 * ReceiveGuard::kCallBytes);
}

TEST_F(ReceiveGuardTest, CallsOfAnEndedConnectionFadeOnceToo) {
  EXPECT_THAT(Check({{"ipv4:1.1.1.1:1", 101 * kMiB, /*calls=*/1000}}),
              ElementsAre("ipv4:1.1.1.1:1"));
  EXPECT_EQ(guard_.TakePeak().now, 1000 * ReceiveGuard::kCallBytes);
  Check({});
  EXPECT_LE(guard_.TakePeak().now, 1000 * ReceiveGuard::kCallBytes);
}

TEST_F(ReceiveGuardTest, CallsWaitForTheirMessagesForALimitedTime) {
  const Traffic traffic = {{"ipv4:1.1.1.1:1", 5000, 4, /*waiting=*/4},
                           {"ipv4:1.1.1.1:2", 5000, 4, /*waiting=*/0}};
  Check(traffic);
  now_ += kMostWait - absl::Milliseconds(40);
  EXPECT_THAT(Check(traffic), IsEmpty());
  EXPECT_THAT(Check(traffic), ElementsAre("ipv4:1.1.1.1:1"));
}

TEST_F(ReceiveGuardTest, WhoWaitedTooLongMakesRoomForOthers) {
  const Traffic traffic = {{"ipv4:1.1.1.1:1", 60 * kMiB, 4, /*waiting=*/4}};
  Check(traffic);
  now_ += kMostWait;
  EXPECT_THAT(Check({traffic[0], {"ipv4:2.2.2.2:1", 90 * kMiB}}),
              ElementsAre("ipv4:1.1.1.1:1"));
}

TEST_F(ReceiveGuardTest, MessagesThatComeSlowlyAreWaitedFor) {
  Traffic traffic = {{"ipv4:1.1.1.1:1", 5000, 4, /*waiting=*/4}};
  for (int i = 0; i < 10; ++i) {
    EXPECT_THAT(Check(traffic), IsEmpty());
    now_ += kMostWait / 2;
    traffic[0].received += 4 * kLeastProgress;
  }
  // Twice as many calls need twice the bytes.
  traffic[0].waiting = 8;
  Check(traffic);
  now_ += kMostWait;
  EXPECT_THAT(Check(traffic), ElementsAre("ipv4:1.1.1.1:1"));
}

// Whoever uploads one message after the other has calls that wait at each look.
TEST_F(ReceiveGuardTest, CallsThatWaitInTurnsAreNoWait) {
  for (int i = 0; i < 10; ++i) {
    EXPECT_THAT(Check({{"ipv4:1.1.1.1:1", 5000, 1, /*waiting=*/i % 2}}),
                IsEmpty());
    now_ += kMostWait / 2;
  }
}

TEST_F(ReceiveGuardTest, TellsThePeakOnce) {
  Check({{"ipv4:1.1.1.1:1", 60 * kMiB}});
  Check({});
  EXPECT_EQ(guard_.TakePeak().most, 60 * kMiB);
  EXPECT_EQ(guard_.TakePeak().most, 0);
}

}  // namespace
}  // namespace sfmamba::rpc
