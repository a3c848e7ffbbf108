#include "server/rpc/port/open_connections.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace sfmamba::rpc {
namespace {

// The client's and the server's end of a TCP connection.
struct Connected {
  Connected() {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* any = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(listener, any, size), 0);
    EXPECT_EQ(listen(listener, 1), 0);
    EXPECT_EQ(getsockname(listener, any, &size), 0);
    client = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(connect(client, any, size), 0);
    server = accept(listener, nullptr, nullptr);
    close(listener);
  }
  ~Connected() {
    close(client);
    if (server >= 0) close(server);
  }
  Connected(const Connected&) = delete;

  bool has_ended() const {
    char byte;
    const ssize_t size = recv(client, &byte, 1, MSG_DONTWAIT);
    return size == 0 || (size < 0 && errno == ECONNRESET);
  }

  int client, server;
};

TEST(OpenConnectionsTest, ThoseClosedAreForgottenEvenIfTheirNumberIsTaken) {
  OpenConnections open;
  Connected first, second;
  open.Add(first.server);
  open.Add(second.server);
  EXPECT_EQ(open.Count(), 2);
  close(first.server);
  EXPECT_EQ(open.size(), 2);
  EXPECT_EQ(open.Count(), 1);
  EXPECT_EQ(open.size(), 1);
  const int number = second.server;
  close(second.server);
  EXPECT_EQ(dup2(first.client, number), number);
  EXPECT_EQ(open.Count(), 0);
  first.server = -1;
}

TEST(OpenConnectionsTest, TheMostSilentAreEnded) {
  OpenConnections open;
  std::vector<std::unique_ptr<Connected>> all;
  for (int i = 0; i < 4; ++i) {
    all.push_back(std::make_unique<Connected>());
    open.Add(all.back()->server);
  }
  // The kernel measures the silence of a connection in whole milliseconds. The
  // test waits much longer, so that the silences differ clearly.
  absl::SleepFor(absl::Milliseconds(50));
  for (int i : {0, 3}) EXPECT_EQ(send(all[i]->client, "x", 1, 0), 1);
  open.EndMostSilent(2);
  EXPECT_EQ(open.size(), 2);
  EXPECT_TRUE(all[1]->has_ended());
  EXPECT_TRUE(all[2]->has_ended());
  EXPECT_FALSE(all[0]->has_ended());
  EXPECT_FALSE(all[3]->has_ended());
  open.EndMostSilent(5);
  EXPECT_EQ(open.size(), 0);
  EXPECT_TRUE(all[0]->has_ended());
}

}  // namespace
}  // namespace sfmamba::rpc
