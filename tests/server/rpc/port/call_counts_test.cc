#include "gtest/gtest.h"
#include "server/rpc/port/receive_guard.h"

namespace sfmamba::rpc {
namespace {

TEST(CallCountsTest, CountsByConnection) {
  ReceiveGuard guard({});
  guard.CallCame("a");
  guard.CallCame("a");
  guard.CallCame("b");
  EXPECT_EQ(guard.CallsOf("a"), 2);
  EXPECT_EQ(guard.CallsOf("b"), 1);
  EXPECT_EQ(guard.CallsOf("c"), 0);
  guard.CallGone("a");
  guard.CallGone("b");
  EXPECT_EQ(guard.CallsOf("a"), 1);
  EXPECT_EQ(guard.CallsOf("b"), 0);
}

}  // namespace
}  // namespace sfmamba::rpc
