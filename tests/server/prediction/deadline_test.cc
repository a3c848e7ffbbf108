#include "server/prediction/deadline.h"

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "server/errors/reasons.h"

namespace sfmamba::prediction {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(500);

absl::Time Deadline(absl::Duration left) {
  return DeadlineOf(kStart + left, kStart, absl::Seconds(30),
                    absl::Seconds(120));
}

TEST(DeadlineTest, IsAsFarAwayAsTheClientsWas) {
  EXPECT_EQ(Deadline(absl::Milliseconds(70)), kStart + absl::Milliseconds(70));
  EXPECT_EQ(Deadline(-absl::Seconds(1)), kStart - absl::Seconds(1));
}

TEST(DeadlineTest, IsCutAndDefaulted) {
  EXPECT_EQ(Deadline(absl::Hours(1)), kStart + absl::Seconds(120));
  EXPECT_EQ(DeadlineOf(absl::InfiniteFuture(), kStart, absl::Seconds(30),
                       absl::Seconds(120)),
            kStart + absl::Seconds(30));
}

TEST(DeadlineTest, AHangUpJustBeforeTheDeadlineIsBecauseOfIt) {
  const absl::Time deadline = kStart + absl::Seconds(10);
  EXPECT_TRUE(HungUpAtDeadline(kStart, deadline, deadline));
  EXPECT_TRUE(
      HungUpAtDeadline(kStart, deadline, deadline - absl::Milliseconds(100)));
  EXPECT_FALSE(
      HungUpAtDeadline(kStart, deadline, deadline - absl::Milliseconds(200)));
  EXPECT_FALSE(HungUpAtDeadline(kStart, deadline, kStart));
}

TEST(DeadlineTest, ErrorsNameTheirStage) {
  EXPECT_EQ(StageOf(server::Expired("decode"), "x"), "decode");
  EXPECT_EQ(StageOf(server::Cancelled("decode"), "x"), "decode");
  EXPECT_EQ(StageOf(absl::CancelledError(""), "x"), "x");
}

}  // namespace
}  // namespace sfmamba::prediction
