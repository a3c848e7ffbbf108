#include "server/rpc/port/call_floods.h"

#include "gtest/gtest.h"

namespace sfmamba::rpc {
namespace {

constexpr int kFd = 7;
constexpr char kClient[] = "1.1.1.1";

class CallFloodsTest : public testing::Test {
 protected:
  static constexpr CallFloods::Limits kLimits = {/*open=*/100,
                                                 /*unanswered=*/1000};

  void SetUp() override { floods_.Begin(kFd, now_); }

  // A moment later, since the connection began.
  CallFloods::Seconds Count(const Channelz::Calls& calls, int fd = kFd) {
    now_ += absl::Milliseconds(1);
    return floods_.Count(fd, kClient, calls, kLimits, now_);
  }
  bool ConnectionFloods(const Channelz::Calls& calls) {
    return Count(calls).connection.Exceeds(kLimits, 1);
  }

  absl::Time now_ = absl::UnixEpoch();
  CallFloods floods_;
};

TEST_F(CallFloodsTest, OpenCallsMayBeTwiceAsManyAsHttp2Allows) {
  EXPECT_FALSE(ConnectionFloods({200, 0, 0}));
  EXPECT_TRUE(ConnectionFloods({201, 0, 0}));
  EXPECT_FALSE(ConnectionFloods({900, 0, 700}));
}

TEST_F(CallFloodsTest, SomeCallsMayStayUnanswered) {
  EXPECT_FALSE(ConnectionFloods({1000, 0, 950}));
  EXPECT_TRUE(ConnectionFloods({1001, 0, 951}));
}

TEST_F(CallFloodsTest, EachAnsweredCallAllowsForSomeThatAreNot) {
  EXPECT_FALSE(ConnectionFloods({11'000, 2000, 8900}));
  EXPECT_TRUE(ConnectionFloods({11'001, 2000, 8901}));
}

TEST_F(CallFloodsTest, AnsweredCallsDoNotAllowForThoseThatPileUp) {
  EXPECT_TRUE(ConnectionFloods({2201, 2000, 0}));
}

TEST_F(CallFloodsTest, EachSecondCountsByItself) {
  EXPECT_FALSE(ConnectionFloods({1000, 0, 1000}));
  now_ += absl::Seconds(1);
  EXPECT_FALSE(ConnectionFloods({1000, 0, 1000}));
  EXPECT_FALSE(ConnectionFloods({2000, 0, 2000}));
  EXPECT_TRUE(ConnectionFloods({2001, 0, 2001}));
}

TEST_F(CallFloodsTest, ANewConnectionBeginsWithoutCalls) {
  EXPECT_TRUE(ConnectionFloods({1001, 0, 1001}));
  floods_.Begin(kFd, now_);
  EXPECT_FALSE(ConnectionFloods({10, 0, 10}));
}

TEST_F(CallFloodsTest, ConnectionsOfAnAddressCountTogether) {
  for (int fd = 1; fd <= 8; ++fd) {
    floods_.Begin(fd, now_);
    EXPECT_FALSE(Count({1000, 0, 1000}, fd)
                     .address.Exceeds(kLimits, CallFloods::kAddressShare));
  }
  floods_.Begin(9, now_);
  EXPECT_TRUE(
      Count({1, 0, 1}, 9).address.Exceeds(kLimits, CallFloods::kAddressShare));
  now_ += absl::Seconds(1);
  EXPECT_FALSE(
      Count({2, 0, 2}, 9).address.Exceeds(kLimits, CallFloods::kAddressShare));
}

}  // namespace
}  // namespace sfmamba::rpc
