#include "server/threads/steady_cond_var.h"

#include <thread>
#include <vector>

#include "base/steady_clock.h"
#include "gtest/gtest.h"
#include "tests/testing/patience.h"

namespace sfmamba::server {
namespace {

class SteadyCondVarTest : public testing::Test {
 protected:
  absl::Mutex mu_;
  SteadyCondVar changed_;
  int waiting_ ABSL_GUARDED_BY(mu_) = 0;
  int woken_ ABSL_GUARDED_BY(mu_) = 0;
  bool go_ ABSL_GUARDED_BY(mu_) = false;
};

TEST_F(SteadyCondVarTest, AWaitEndsWithItsTime) {
  const TimeLimit limit("the end of a wait");
  const absl::Time start = base::SteadyNow();
  absl::MutexLock lock(&mu_);
  while (base::SteadyNow() - start < absl::Milliseconds(10)) {
    changed_.WaitWithTimeout(&mu_, absl::Milliseconds(10));
  }
  changed_.WaitWithTimeout(&mu_, absl::ZeroDuration());
  changed_.WaitWithTimeout(&mu_, -absl::InfiniteDuration());
}

TEST_F(SteadyCondVarTest, ASignalEndsAWaitWithoutEnd) {
  std::thread waiter([this] {
    absl::MutexLock lock(&mu_);
    while (!go_) changed_.WaitWithTimeout(&mu_, absl::InfiniteDuration());
  });
  {
    absl::MutexLock lock(&mu_);
    go_ = true;
  }
  changed_.Signal();
  Join(waiter, "the end of the wait");
}

TEST_F(SteadyCondVarTest, TheMutexIsGivenBackMeanwhileAndAllAreWoken) {
  std::vector<std::thread> waiters;
  for (int i = 0; i < 4; ++i) {
    waiters.emplace_back([this] {
      absl::MutexLock lock(&mu_);
      ++waiting_;
      while (!go_) changed_.Wait(&mu_);
      ++woken_;
    });
  }
  WaitUntil(
      [this] {
        absl::MutexLock lock(&mu_);
        return waiting_ == 4;
      },
      "all to wait");
  {
    absl::MutexLock lock(&mu_);
    go_ = true;
  }
  changed_.SignalAll();
  for (std::thread& waiter : waiters) Join(waiter, "the end of a wait");
  absl::MutexLock lock(&mu_);
  EXPECT_EQ(woken_, 4);
}

TEST_F(SteadyCondVarTest, AnAwaitEndsOnceThePredicateHolds) {
  std::thread other([this] {
    absl::MutexLock lock(&mu_);
    go_ = true;
    changed_.SignalAll();
  });
  const auto goes = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return go_; };
  {
    const TimeLimit limit("the end of a wait");
    absl::MutexLock lock(&mu_);
    EXPECT_TRUE(changed_.Await(&mu_, absl::InfiniteDuration(), goes));
    EXPECT_TRUE(changed_.Await(&mu_, -absl::Seconds(1), goes));
  }
  Join(other, "the end of the signal");
}

TEST_F(SteadyCondVarTest, AnAwaitEndsWithItsTime) {
  const auto never = [] { return false; };
  absl::MutexLock lock(&mu_);
  const absl::Time start = base::SteadyNow();
  EXPECT_FALSE(changed_.Await(&mu_, absl::Milliseconds(20), never));
  EXPECT_GE(base::SteadyNow() - start, absl::Milliseconds(20));
  EXPECT_FALSE(changed_.Await(&mu_, -absl::Seconds(1), never));
  mu_.AssertHeld();
}

}  // namespace
}  // namespace sfmamba::server
