#include "client/rpc/server_address.h"

#include <stdlib.h>

#include <string>

#include "gtest/gtest.h"

namespace sfmamba::client {
namespace {

TEST(ServerAddressTest, WhatStaysOnThisMachine) {
  for (const char* near :
       {"localhost:1", "LocalHost:1", "127.0.0.1:1", "127.9.9.9:1", "[::1]:1",
        "[::ffff:127.0.0.1]:1", "ipv4:127.0.0.1:1", "ipv6:[::1]:1",
        "ipv4:127.0.0.1:1,127.0.0.2:2", "dns:///localhost:1"}) {
    EXPECT_TRUE(IsLoopback(near)) << near;
  }
  for (const char* far :
       {"vision:1", "10.0.0.1:1", "0.0.0.0:1", "[::]:1", "[::ffff:10.0.0.1]:1",
        "127.0.0.1.example.org:1", "localhost.example.org:1", "127.example:1",
        "ipv4:127.0.0.1:1,10.0.0.1:1", "ipv6:[::1]:1,[2001:db8::1]:1",
        "dns:///vision:1", "dns://127.0.0.1/vision:1"}) {
    EXPECT_FALSE(IsLoopback(far)) << far;
  }
}

TEST(ServerAddressTest, TheProxyThatGrpcTakes) {
  EXPECT_EQ(ProxyOf("vision.example.org:1"), "");
  setenv("http_proxy", "http://user:password@a:1", 1);
  EXPECT_EQ(ProxyOf("vision.example.org:1"), "a:1");
  EXPECT_EQ(ProxyOf("127.0.0.1:1"), "");
  setenv("grpc_proxy", "http://b:1", 1);
  EXPECT_EQ(ProxyOf("vision.example.org:1"), "b:1");
  setenv("no_proxy", "x, example.org", 1);
  EXPECT_EQ(ProxyOf("vision.example.org:1"), "");
  EXPECT_EQ(ProxyOf("10.0.0.1:1"), "b:1");
}

}  // namespace
}  // namespace sfmamba::client
