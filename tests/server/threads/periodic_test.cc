#include "server/threads/periodic.h"

#include <atomic>

#include "absl/synchronization/blocking_counter.h"
#include "gtest/gtest.h"
#include "tests/testing/patience.h"

namespace sfmamba::server {
namespace {

TEST(PeriodicTest, CallsAgainAndAgainUntilItGoes) {
  std::atomic<int> calls{0};
  absl::BlockingCounter third(3);
  {
    Periodic periodic("test", absl::Milliseconds(1), [&] {
      if (++calls <= 3) third.DecrementCount();
    });
    WaitFor(third, "the third call");
  }
  EXPECT_GE(calls.load(), 3);
}

TEST(PeriodicTest, DoesNotWaitForItsPeriodWhenItGoes) {
  TimeLimit limit("the end of a Periodic", kTestPatience);
  bool called = false;
  {
    Periodic periodic("test", absl::Hours(1), [&] { called = true; });
  }
  EXPECT_FALSE(called);
}

}  // namespace
}  // namespace sfmamba::server
