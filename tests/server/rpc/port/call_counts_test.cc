#include "server/rpc/port/call_counts.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace sfmamba::rpc {
namespace {

class CallCountsTest : public testing::Test {
 protected:
  void End(int calls, CallEnd how, const std::string& peer) {
    for (int i = 0; i < calls; ++i) counts_.Ended(peer, how, now_);
  }
  void Cancel(int calls, const std::string& peer) {
    End(calls, CallEnd::kReset, peer);
  }

  absl::Time now_ = absl::UnixEpoch();
  std::vector<std::string> ended_;
  CallCounts counts_{
      [this](const std::string& peer) { ended_.push_back(peer); }};
};

TEST_F(CallCountsTest, WhoResetsTooManyInASecondIsToldOfOnce) {
  Cancel(CallCounts::kMostResets, "a");
  Cancel(CallCounts::kMostResets, "b");
  EXPECT_EQ(ended_, std::vector<std::string>{});
  Cancel(10, "b");
  EXPECT_EQ(ended_, std::vector<std::string>{"b"});
}

TEST_F(CallCountsTest, EachSecondCountsAnew) {
  for (int i = 0; i < 5; ++i) {
    Cancel(CallCounts::kMostResets, "a");
    now_ += absl::Seconds(1);
  }
  EXPECT_EQ(ended_, std::vector<std::string>{});
}

TEST_F(CallCountsTest, CallsThatExpireDoNotCount) {
  End(10 * CallCounts::kMostResets, CallEnd::kExpired, "a");
  EXPECT_EQ(ended_, std::vector<std::string>{});
}

TEST_F(CallCountsTest, WhoLetsAsManyBeAnsweredMayReset) {
  for (int i = 0; i < 10 * CallCounts::kMostResets; ++i) {
    Cancel(1, "a");
    End(1, CallEnd::kAnswered, "a");
  }
  EXPECT_EQ(ended_, std::vector<std::string>{});
  // Answers to another are not one's own.
  for (int i = 0; i <= CallCounts::kMostResets; ++i) {
    Cancel(1, "a");
    End(1, CallEnd::kAnswered, "b");
  }
  EXPECT_EQ(ended_, std::vector<std::string>{"a"});
}

TEST_F(CallCountsTest, AnswersCannotBeSavedUp) {
  Cancel(1, "a");
  End(10 * CallCounts::kMostResets, CallEnd::kAnswered, "a");
  Cancel(CallCounts::kMostResets + 1, "a");
  EXPECT_EQ(ended_, std::vector<std::string>{"a"});
}

TEST(EndOfTest, AResetBeforeTheDeadlineIsOneWhateverItsAge) {
  const absl::Duration soon = absl::Milliseconds(1), late = absl::Seconds(9);
  EXPECT_EQ(EndOf(false, soon, late), CallEnd::kAnswered);
  EXPECT_EQ(EndOf(false, late, -soon), CallEnd::kAnswered);
  EXPECT_EQ(EndOf(true, soon, absl::InfiniteDuration()), CallEnd::kReset);
  EXPECT_EQ(EndOf(true, late, soon), CallEnd::kReset);
  EXPECT_EQ(EndOf(true, late, -soon), CallEnd::kExpired);
  // A deadline of next to nothing is a way to reset a call.
  EXPECT_EQ(EndOf(true, soon, -soon), CallEnd::kReset);
}

}  // namespace
}  // namespace sfmamba::rpc
