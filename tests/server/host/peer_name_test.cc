#include "server/host/peer_name.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/host/listening_sockets.h"

namespace sfmamba::server {
namespace {

// Returns the name of a client of `family` at a port of `host`, with "PORT" in
// place of the port's number. Returns "" if the family is not available.
std::string NameOf(const std::string& host, int family) {
  auto sockets = ListeningSockets::Bind("a port", host, 0);
  if (!sockets.ok()) return "";
  const int fd = socket(family, SOCK_STREAM, 0);
  sockaddr_in v4 = {};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(sockets->port());
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr_in6 v6 = {};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(sockets->port());
  inet_pton(AF_INET6, host == "::1" ? "::1" : "::ffff:127.0.0.1",
            &v6.sin6_addr);
  const bool is_v4 = family == AF_INET;
  const int result = connect(fd,
                             is_v4 ? reinterpret_cast<const sockaddr*>(&v4)
                                   : reinterpret_cast<const sockaddr*>(&v6),
                             is_v4 ? sizeof(v4) : sizeof(v6));
  std::string name = result == 0 ? PeerName(fd) : "";
  close(fd);
  const std::string port = absl::StrCat(":", sockets->port());
  const size_t at = name.rfind(port);
  if (at != name.npos) name.replace(at, port.size(), ":PORT");
  return name;
}

TEST(PeerNameTest, IsAsGrpcWritesIt) {
  EXPECT_EQ(NameOf("127.0.0.1", AF_INET), "ipv4:127.0.0.1:PORT");
  EXPECT_EQ(PeerName(-1), "");
}

TEST(PeerNameTest, KnowsIpv6) {
  const std::string name = NameOf("::1", AF_INET6);
  if (name.empty()) GTEST_SKIP() << "this machine has no IPv6";
  EXPECT_EQ(name, "ipv6:%5B::1%5D:PORT");
  EXPECT_EQ(NameOf("127.0.0.1", AF_INET6), "ipv4:127.0.0.1:PORT");
}

}  // namespace
}  // namespace sfmamba::server
