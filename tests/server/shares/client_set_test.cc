#include "server/shares/client_set.h"

#include "gtest/gtest.h"

namespace sfmamba::server {
namespace {

TEST(ClientSetTest, RemembersEachClient) {
  ClientSet clients(10);
  EXPECT_TRUE(clients.Insert("ipv4:10.0.0.1"));
  EXPECT_FALSE(clients.Insert("ipv4:10.0.0.1"));
  EXPECT_TRUE(clients.Insert("ipv4:10.0.0.2"));
  EXPECT_TRUE(clients.Insert(""));
}

TEST(ClientSetTest, StartsAnewWhenFull) {
  ClientSet clients(2);
  EXPECT_TRUE(clients.Insert("1"));
  EXPECT_TRUE(clients.Insert("2"));
  EXPECT_FALSE(clients.Insert("1"));
  EXPECT_TRUE(clients.Insert("3"));
  EXPECT_TRUE(clients.Insert("1"));
}

}  // namespace
}  // namespace sfmamba::server
