#include "gtest/gtest.h"
#include "server/rpc/port/open_connections.h"

namespace sfmamba::rpc {
namespace {

TEST(CallCountsTest, CountsByConnection) {
  CallCounts counts;
  counts.Came("a");
  counts.Came("a");
  counts.Came("b");
  EXPECT_EQ(counts.Of("a"), 2);
  EXPECT_EQ(counts.Of("b"), 1);
  EXPECT_EQ(counts.Of("c"), 0);
  counts.Gone("a");
  counts.Gone("b");
  EXPECT_EQ(counts.Of("a"), 1);
  EXPECT_EQ(counts.Of("b"), 0);
}

}  // namespace
}  // namespace sfmamba::rpc
