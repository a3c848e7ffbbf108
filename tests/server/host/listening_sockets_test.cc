#include "server/host/listening_sockets.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace sfmamba::server {
namespace {

bool Connects(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int result =
      connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address));
  close(fd);
  return result == 0;
}

TEST(ListeningSocketsTest, ListenUntilTheyAreClosed) {
  for (const char* host : {"127.0.0.1", "localhost", "0.0.0.0", "*"}) {
    auto sockets = ListeningSockets::Bind("a port", host, 0);
    ASSERT_TRUE(sockets.ok()) << sockets.status();
    EXPECT_GT(sockets->port(), 0);
    EXPECT_TRUE(Connects(sockets->port())) << host;
    ListeningSockets moved = *std::move(sockets);
    EXPECT_TRUE(Connects(moved.port())) << host;
    moved.Close();
    EXPECT_FALSE(Connects(moved.port())) << host;
    EXPECT_TRUE(moved.fds().empty()) << "their numbers may be others' by now";
  }
}

TEST(ListeningSocketsTest, ThoseThatAreReplacedAreClosed) {
  auto sockets = ListeningSockets::Bind("a port", "127.0.0.1", 0);
  auto others = ListeningSockets::Bind("a port", "127.0.0.1", 0);
  ASSERT_TRUE(sockets.ok() && others.ok());
  const int before = sockets->port(), after = others->port();
  *sockets = *std::move(others);
  EXPECT_FALSE(Connects(before));
  EXPECT_TRUE(Connects(after));
  EXPECT_EQ(sockets->port(), after);
}

TEST(ListeningSocketsTest, LeaveNoOtherDescriptorOpen) {
  const auto next = [] {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    close(fd);
    return fd;
  };
  const int before = next();
  auto sockets = ListeningSockets::Bind("a port", "*", 0);
  ASSERT_TRUE(sockets.ok()) << sockets.status();
  sockets->Close();
  EXPECT_FALSE(ListeningSockets::Bind("a port", "192.0.2.1", 0).ok());
  EXPECT_EQ(next(), before);
}

// The kernel keeps a connection for a minute if the server closed it first.
TEST(ListeningSocketsTest, APortIsFreeAgainThoughItsConnectionsLinger) {
  auto first = ListeningSockets::Bind("a port", "127.0.0.1", 0);
  ASSERT_TRUE(first.ok()) << first.status();
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(first->port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(
      connect(client, reinterpret_cast<sockaddr*>(&address), sizeof(address)),
      0);
  pollfd waiting = {first->fds()[0], POLLIN, 0};
  ASSERT_EQ(poll(&waiting, 1, /*timeout=*/10'000), 1);
  close(accept(waiting.fd, nullptr, nullptr));
  close(client);
  first->Close();
  const auto second =
      ListeningSockets::Bind("a port", "127.0.0.1", first->port());
  EXPECT_TRUE(second.ok()) << second.status();
}

TEST(ListeningSocketsTest, AnIpv6AddressMayStandInBrackets) {
  auto sockets = ListeningSockets::Bind("a port", "::1", 0);
  if (!sockets.ok()) GTEST_SKIP() << "this machine has no IPv6";
  const int port = sockets->port();
  sockets->Close();
  sockets = ListeningSockets::Bind("a port", "[::1]", port);
  ASSERT_TRUE(sockets.ok()) << sockets.status();
  EXPECT_EQ(sockets->port(), port);
}

TEST(ListeningSocketsTest, WhatCannotBeBoundIsNamed) {
  auto first = ListeningSockets::Bind("a port", "127.0.0.1", 0);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(ListeningSockets::Bind("the port", "127.0.0.1", first->port())
                .status()
                .message(),
            absl::StrCat("cannot bind the port: 127.0.0.1:", first->port(),
                         ": Address already in use"));
  EXPECT_EQ(
      ListeningSockets::Bind("the port", "192.0.2.1", 0).status().message(),
      "cannot bind the port: 192.0.2.1:0: Cannot assign requested address");
  EXPECT_EQ(ListeningSockets::Bind("the port", "no host", 0).status().message(),
            "cannot bind the port: no host:0: not an address of this machine");
}

}  // namespace
}  // namespace sfmamba::server
