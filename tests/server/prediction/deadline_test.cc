#include "server/prediction/deadline.h"

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "server/base/reasons.h"

namespace sfmamba::prediction {
namespace {

const absl::Time kWall = absl::FromUnixSeconds(1'700'000'000);
const absl::Time kSteady = absl::FromUnixSeconds(500);

absl::Time Deadline(absl::Duration left) {
  return SteadyDeadline(kWall + left, kWall, kSteady, absl::Seconds(30),
                        absl::Seconds(120));
}

TEST(DeadlineTest, IsAsFarAwayAsTheClientsWas) {
  EXPECT_EQ(Deadline(absl::Milliseconds(70)), kSteady + absl::Milliseconds(70));
  EXPECT_EQ(Deadline(-absl::Seconds(1)), kSteady - absl::Seconds(1));
}

TEST(DeadlineTest, IsCutAndDefaulted) {
  EXPECT_EQ(Deadline(absl::Hours(1)), kSteady + absl::Seconds(120));
  EXPECT_EQ(SteadyDeadline(absl::InfiniteFuture(), kWall, kSteady,
                           absl::Seconds(30), absl::Seconds(120)),
            kSteady + absl::Seconds(30));
}

TEST(DeadlineTest, AHangUpJustBeforeTheDeadlineIsBecauseOfIt) {
  const absl::Time deadline = kSteady + absl::Seconds(10);
  EXPECT_TRUE(HungUpAtDeadline(kSteady, deadline, deadline));
  EXPECT_TRUE(
      HungUpAtDeadline(kSteady, deadline, deadline - absl::Milliseconds(100)));
  EXPECT_FALSE(
      HungUpAtDeadline(kSteady, deadline, deadline - absl::Milliseconds(200)));
  EXPECT_FALSE(HungUpAtDeadline(kSteady, deadline, kSteady));
}

TEST(DeadlineTest, ErrorsNameTheirStage) {
  EXPECT_EQ(StageOf(server::Expired("decode"), "x"), "decode");
  EXPECT_EQ(StageOf(server::Cancelled("decode"), "x"), "decode");
  EXPECT_EQ(StageOf(absl::CancelledError(""), "x"), "x");
}

}  // namespace
}  // namespace sfmamba::prediction
