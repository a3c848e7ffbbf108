#include "server/threads/recent_mean.h"

#include "gtest/gtest.h"

namespace sfmamba::server {
namespace {

TEST(RecentMeanTest, IsZeroThenTheFirstThenFollowsTheLater) {
  RecentMean mean;
  EXPECT_EQ(mean.mean(), absl::ZeroDuration());
  mean.Add(absl::Milliseconds(8));
  EXPECT_EQ(mean.mean(), absl::Milliseconds(8));
  mean.Add(absl::Milliseconds(16));
  EXPECT_EQ(mean.mean(), absl::Milliseconds(9));
  for (int i = 0; i < 100; ++i) mean.Add(absl::Milliseconds(16));
  EXPECT_NEAR(absl::ToDoubleMilliseconds(mean.mean()), 16, 0.01);
}

}  // namespace
}  // namespace sfmamba::server
