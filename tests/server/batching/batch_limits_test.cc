#include "gtest/gtest.h"
#include "server/batching/batch_runner.h"

namespace sfmamba::batching {
namespace {

constexpr BatchLimits::Size kSmall = {4, 4}, kLarge = {4, 8};

TEST(BatchLimitsTest, ThereIsNoneUntilABatchIsTooLarge) {
  EXPECT_EQ(BatchLimits().Allowed(kSmall, 1000), 1000);
}

TEST(BatchLimitsTest, HalfOfWhatIsTooMuchIsAllowed) {
  BatchLimits limits;
  limits.Halve(kSmall, 9);
  EXPECT_EQ(limits.Allowed(kSmall, 9), 4);
  EXPECT_EQ(limits.Allowed(kSmall, 3), 3);
  limits.Halve(kSmall, 2);
  EXPECT_EQ(limits.Allowed(kSmall, 9), 1);
}

TEST(BatchLimitsTest, ALimitNeverRises) {
  BatchLimits limits;
  limits.Halve(kSmall, 4);
  limits.Halve(kSmall, 8);
  EXPECT_EQ(limits.Allowed(kSmall, 9), 2);
}

TEST(BatchLimitsTest, ALimitIsThatOfASize) {
  BatchLimits limits;
  limits.Halve(kLarge, 4);
  EXPECT_EQ(limits.Allowed(kSmall, 9), 9);
}

}  // namespace
}  // namespace sfmamba::batching
