#include "server/base/steady_await.h"

#include <thread>

#include "absl/time/clock.h"
#include "base/steady_clock.h"
#include "gtest/gtest.h"

namespace sfmamba::server {
namespace {

TEST(SteadyAwaitTest, EndsWhenTheConditionIsTrue) {
  absl::Mutex mu;
  bool done = false;
  std::thread other([&] {
    absl::MutexLock lock(&mu);
    done = true;
  });
  mu.Lock();
  EXPECT_TRUE(SteadyAwait(&mu, absl::Condition(&done), absl::Hours(1)));
  mu.AssertHeld();
  EXPECT_TRUE(
      SteadyAwait(&mu, absl::Condition(&done), absl::InfiniteDuration()));
  EXPECT_TRUE(SteadyAwait(&mu, absl::Condition(&done), -absl::Seconds(1)));
  mu.Unlock();
  other.join();
}

TEST(SteadyAwaitTest, EndsWhenTheTimeHasPassed) {
  absl::Mutex mu;
  const bool never = false;
  const auto is_true = [&] { return never; };
  absl::MutexLock lock(&mu);
  const absl::Time start = base::SteadyNow();
  EXPECT_FALSE(
      SteadyAwait(&mu, absl::Condition(&is_true), absl::Milliseconds(20)));
  EXPECT_GE(base::SteadyNow() - start, absl::Milliseconds(20));
  EXPECT_FALSE(SteadyAwait(&mu, absl::Condition(&is_true), -absl::Seconds(1)));
  mu.AssertHeld();
}

}  // namespace
}  // namespace sfmamba::server
