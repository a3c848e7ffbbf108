#include "server/rpc/port/call_floods.h"

#include "gtest/gtest.h"

namespace sfmamba::rpc {
namespace {

constexpr int kMost = 1000;
constexpr int kFd = 7;
constexpr char kClient[] = "1.1.1.1";

class CallFloodsTest : public testing::Test {
 protected:
  void SetUp() override { floods_.Begin(kFd, now_); }

  // A moment later, since the connection began.
  CallFloods::Seconds Count(const Channelz::Calls& calls, int fd = kFd,
                            int64_t bytes = 0) {
    now_ += absl::Milliseconds(1);
    return floods_.Count(fd, kClient, {calls, bytes}, now_);
  }
  bool ConnectionFloods(const Channelz::Calls& calls, int64_t bytes = 0) {
    return Count(calls, kFd, bytes).connection.Exceeds(kMost);
  }

  absl::Time now_ = absl::UnixEpoch();
  CallFloods floods_;
};

TEST_F(CallFloodsTest, SomeCallsMayStayUnanswered) {
  EXPECT_FALSE(ConnectionFloods({1000, 0, 950}));
  EXPECT_TRUE(ConnectionFloods({1001, 0, 951}));
}

TEST_F(CallFloodsTest, EachAnsweredCallAllowsForSomeThatAreNot) {
  EXPECT_FALSE(ConnectionFloods({11'000, 2000, 8900}));
  EXPECT_TRUE(ConnectionFloods({11'001, 2000, 8901}));
}

TEST_F(CallFloodsTest, CallsWithPicturesAreNone) {
  EXPECT_FALSE(ConnectionFloods({3000, 0, 2900}, 2000 * 32'768));
  EXPECT_TRUE(ConnectionFloods({3001, 0, 2901}, 2000 * 32'768));
  now_ += absl::Seconds(1);
  EXPECT_FALSE(ConnectionFloods({3001, 0, 3001}, 2000 * 32'768));
  EXPECT_TRUE(ConnectionFloods({4002, 0, 4002}, 2000 * 32'768))
      << "bytes of another second count";
}

TEST_F(CallFloodsTest, EachSecondCountsByItself) {
  EXPECT_FALSE(ConnectionFloods({1000, 0, 1000}));
  now_ += absl::Seconds(1);
  EXPECT_FALSE(ConnectionFloods({1000, 0, 1000}));
  EXPECT_FALSE(ConnectionFloods({2000, 0, 2000}));
  EXPECT_TRUE(ConnectionFloods({2001, 0, 2001}));
}

TEST_F(CallFloodsTest, AnswersAllowForNoCallsOfTheNextSecond) {
  EXPECT_FALSE(ConnectionFloods({2000, 2000, 0}));
  now_ += absl::Seconds(1);
  EXPECT_FALSE(ConnectionFloods({2000, 2000, 0}));
  EXPECT_FALSE(ConnectionFloods({3000, 2000, 1000}));
  EXPECT_TRUE(ConnectionFloods({3001, 2000, 1001}));
}

TEST_F(CallFloodsTest, ANewConnectionBeginsWithoutCalls) {
  EXPECT_TRUE(ConnectionFloods({1001, 0, 1001}));
  floods_.Begin(kFd, now_);
  EXPECT_FALSE(ConnectionFloods({10, 0, 10}));
}

TEST_F(CallFloodsTest, ConnectionsOfAnAddressCountTogether) {
  for (int fd = 1; fd <= 9; ++fd) floods_.Begin(fd, now_);
  Count({0, 0, 0});  // A second begins.
  int64_t unanswered = 0;
  for (int fd = 1; fd <= 9; ++fd) {
    Count({0, 0, 0}, fd);
    const CallFloods::Second address =
        Count({130, 30, 100}, fd, /*bytes=*/10).address;
    unanswered = address.unanswered;
    EXPECT_EQ(address.answered, 30 * fd);
    EXPECT_EQ(address.bytes, 10 * fd);
  }
  EXPECT_EQ(unanswered, 900);
  now_ += absl::Seconds(1);
  EXPECT_EQ(Count({130, 30, 100}, 9).address.unanswered, 0);
}

TEST_F(CallFloodsTest, WhatCameInEarlierSecondsIsNotOfTheAddressNow) {
  Count({10, 0, 10});
  now_ += absl::Seconds(9);
  floods_.Begin(8, now_);
  Count({0, 0, 0}, 8);  // A second begins.
  now_ += absl::Milliseconds(998);
  const int64_t unanswered = Count({10'010, 0, 10'010}).address.unanswered;
  EXPECT_NEAR(unanswered, 1000, 1);
}

}  // namespace
}  // namespace sfmamba::rpc
