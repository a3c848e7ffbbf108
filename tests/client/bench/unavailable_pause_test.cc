#include "client/bench/unavailable_pause.h"

#include "gtest/gtest.h"

namespace sfmamba::client {
namespace {

absl::Duration At(int milliseconds) { return absl::Milliseconds(milliseconds); }

TEST(UnavailablePauseTest, OneAttemptAfterTheOtherDoublesIt) {
  UnavailablePause pause;
  EXPECT_EQ(pause.until(), At(0));
  pause.Answered(true, At(0), At(1));
  EXPECT_EQ(pause.until(), At(6));
  pause.Answered(true, At(0), At(2));
  EXPECT_EQ(pause.until(), At(6)) << "it was sent before the pause";
  pause.Answered(true, At(6), At(7));
  EXPECT_EQ(pause.until(), At(17));
  absl::Duration sent = pause.until();
  for (int i = 0; i < 20; ++i) {
    pause.Answered(true, sent, sent);
    EXPECT_LE(pause.until() - sent, UnavailablePause::kLongest);
    sent = pause.until();
  }
  pause.Answered(true, sent, sent);
  EXPECT_EQ(pause.until() - sent, UnavailablePause::kLongest);
}

TEST(UnavailablePauseTest, AnyOtherAnswerEndsIt) {
  UnavailablePause pause;
  pause.Answered(true, At(0), At(1));
  pause.Answered(true, At(6), At(7));
  pause.Answered(false, At(6), At(8));
  EXPECT_LE(pause.until(), At(8));
  pause.Answered(true, At(8), At(9));
  EXPECT_EQ(pause.until(), At(14));
}

}  // namespace
}  // namespace sfmamba::client
