#include "server/rpc/reset_guard.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace sfmamba::rpc {
namespace {

class ResetGuardTest : public testing::Test {
 protected:
  void Cancel(int calls, const std::string& peer,
              absl::Duration lived = absl::Milliseconds(1)) {
    for (int i = 0; i < calls; ++i) guard_.Cancelled(peer, lived, now_);
  }

  absl::Time now_ = absl::UnixEpoch();
  std::vector<std::string> ended_;
  ResetGuard guard_{
      [this](const std::string& peer) { ended_.push_back(peer); }};
};

TEST_F(ResetGuardTest, WhoResetsTooManyInASecondIsToldOfOnce) {
  Cancel(ResetGuard::kMostResets, "a");
  Cancel(ResetGuard::kMostResets, "b");
  EXPECT_EQ(ended_, std::vector<std::string>{});
  Cancel(10, "b");
  EXPECT_EQ(ended_, std::vector<std::string>{"b"});
}

TEST_F(ResetGuardTest, EachSecondCountsAnew) {
  for (int i = 0; i < 5; ++i) {
    Cancel(ResetGuard::kMostResets, "a");
    now_ += absl::Seconds(1);
  }
  EXPECT_EQ(ended_, std::vector<std::string>{});
}

TEST_F(ResetGuardTest, CallsThatWereGivenTimeDoNotCount) {
  Cancel(10 * ResetGuard::kMostResets, "a", absl::Milliseconds(500));
  EXPECT_EQ(ended_, std::vector<std::string>{});
}

}  // namespace
}  // namespace sfmamba::rpc
