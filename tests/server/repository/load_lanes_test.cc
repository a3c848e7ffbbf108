#include "server/repository/load_lanes.h"

#include <atomic>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "tests/testing/patience.h"

namespace sfmamba::repository {
namespace {

TEST(LoadLanesTest, AJobThatTakesLongDoesNotHoldUpOtherModels) {
  absl::Notification go, other;
  LoadLanes lanes(/*most_waiting=*/8, [] {});
  lanes.Push("slow", [&](server::Worker&, bool) { go.WaitForNotification(); });
  lanes.Push("other", [&](server::Worker&, bool) { other.Notify(); });
  WaitFor(other, "the other model's job");
  EXPECT_TRUE(lanes.IsBusy("slow"));
  WaitUntil([&] { return !lanes.IsBusy("other"); }, "the end of the job");
  go.Notify();
}

TEST(LoadLanesTest, JobsOfAModelRunOneByOneInTheirOrder) {
  // No mutex guards this, so that a sanitizer finds overlapping jobs.
  std::vector<int> order;
  {
    LoadLanes lanes(/*most_waiting=*/100, [] {});
    for (int i = 0; i < 100; ++i) {
      lanes.Push("m",
                 [&order, i](server::Worker&, bool) { order.push_back(i); });
    }
    WaitUntil([&] { return !lanes.IsBusy("m"); }, "the jobs' end");
  }
  ASSERT_EQ(order.size(), 100);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
}

TEST(LoadLanesTest, TooManyJobsAreRefusedAndTheEndTellsThoseThatWait) {
  absl::Notification go;
  std::atomic<int> begun{0}, stopped{0}, refused{0};
  {
    LoadLanes lanes(/*most_waiting=*/2, [] {});
    const auto push = [&](int i) {
      return lanes.Push(absl::StrCat(i), [&](server::Worker&, bool is_stopped) {
        ++begun;
        stopped += is_stopped;
        go.WaitForNotification();
      });
    };
    for (int i = 0; i < LoadLanes::kLanes; ++i) {
      EXPECT_TRUE(push(i));
      WaitUntil([&] { return begun == i + 1; }, "a job's begin");
    }
    for (int i = 10; i < 15; ++i) refused += !push(i);
    EXPECT_EQ(refused, 3);
    lanes.Stop();
    go.Notify();
  }
  EXPECT_EQ(stopped, 2);
}

}  // namespace
}  // namespace sfmamba::repository
