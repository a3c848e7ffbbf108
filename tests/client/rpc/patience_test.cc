#include "client/rpc/patience.h"

#include "client/rpc/rpc_status.h"
#include "gtest/gtest.h"
#include "tests/client/fake_vision_server.h"

namespace sfmamba::client {
namespace {

const absl::Time kStart = absl::UnixEpoch();
const absl::Status kGone = absl::UnavailableError("gone");

TEST(PatienceTest, AServerThatNeverAnsweredIsTriedSoOften) {
  Patience patience(3);
  EXPECT_TRUE(patience.DelayAfter(kGone, kStart).has_value());
  EXPECT_TRUE(patience.DelayAfter(kGone, kStart).has_value());
  EXPECT_FALSE(patience.DelayAfter(kGone, kStart).has_value());
}

TEST(PatienceTest, OneThatHasIsWaitedForFromItsFirstFailure) {
  Patience patience(1);
  patience.Answered();
  // No request was sent in this hour.
  const absl::Time failed = kStart + absl::Hours(1);
  absl::Duration last;
  for (int i = 0; i < 10; ++i) {
    last = patience.DelayAfter(kGone, failed + Patience::kLimit).value();
  }
  EXPECT_LT(last, absl::Seconds(2));
  EXPECT_FALSE(
      patience
          .DelayAfter(kGone, failed + 2 * Patience::kLimit + absl::Seconds(1))
          .has_value());
  patience.Answered();
  EXPECT_TRUE(
      patience.DelayAfter(kGone, failed + 3 * Patience::kLimit).has_value());
}

TEST(PatienceTest, TheServersDelayIsKept) {
  Patience patience(3);
  const absl::Status asks = FromGrpcStatus(FakeError(
      grpc::StatusCode::UNAVAILABLE, "later", "DRAINING", "", /*delay=*/7));
  EXPECT_EQ(patience.DelayAfter(asks, kStart), absl::Seconds(7));
}

TEST(PatienceTest, OtherErrorsAreNotWaitedFor) {
  Patience patience(3);
  patience.Answered();
  EXPECT_FALSE(
      patience.DelayAfter(absl::InternalError("x"), kStart).has_value());
  // FakeError() gives no state of the model in its details. Only the state
  // LOADING makes a retry useful. The client treats this error as if the model
  // had failed to load.
  const absl::Status failed = FromGrpcStatus(
      FakeError(grpc::StatusCode::UNAVAILABLE, "x", "MODEL_NOT_READY"));
  EXPECT_FALSE(patience.DelayAfter(failed, kStart).has_value());
}

}  // namespace
}  // namespace sfmamba::client
