#include "server/rpc/port/call_counts.h"

#include "gtest/gtest.h"

namespace sfmamba::rpc {
namespace {

TEST(CallCountsTest, CountsByConnection) {
  CallCounts counts;
  counts.MessageCame("a");
  counts.MessageCame("a");
  counts.MessageCame("b");
  EXPECT_EQ(counts.WithMessage("a"), 2);
  EXPECT_EQ(counts.WithMessage("b"), 1);
  EXPECT_EQ(counts.WithMessage("c"), 0);
  counts.Gone("a");
  counts.Gone("b");
  EXPECT_EQ(counts.WithMessage("a"), 1);
  EXPECT_EQ(counts.WithMessage("b"), 0);
}

}  // namespace
}  // namespace sfmamba::rpc
