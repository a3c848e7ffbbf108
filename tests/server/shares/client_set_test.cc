#include "server/shares/client_set.h"

#include "gtest/gtest.h"

namespace sfmamba::server {
namespace {

TEST(ClientSetTest, AClientIsItsAddressWithoutThePort) {
  ClientSet clients(10);
  EXPECT_TRUE(clients.Insert("ipv4:10.0.0.1:1000"));
  EXPECT_FALSE(clients.Insert("ipv4:10.0.0.1:2000"));
  EXPECT_TRUE(clients.Insert("ipv4:10.0.0.2:1000"));
  EXPECT_TRUE(clients.Insert("ipv6:%5B::1%5D:1000"));
  EXPECT_FALSE(clients.Insert("ipv6:%5B::1%5D:2000"));
  EXPECT_TRUE(clients.Insert(""));
}

TEST(ClientSetTest, StartsAnewWhenFull) {
  ClientSet clients(2);
  EXPECT_TRUE(clients.Insert("ipv4:1:0"));
  EXPECT_TRUE(clients.Insert("ipv4:2:0"));
  EXPECT_FALSE(clients.Insert("ipv4:1:0"));
  EXPECT_TRUE(clients.Insert("ipv4:3:0"));
  EXPECT_TRUE(clients.Insert("ipv4:1:0"));
}

}  // namespace
}  // namespace sfmamba::server
