#include "server/rpc/port/open_connections.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "server/host/peer_name.h"
#include "tests/server/rpc/port/channelz_fixture.h"

namespace sfmamba::rpc {
namespace {

// Both ends of a TCP connection.
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
  // The kernel's clock of silence ticks in milliseconds.
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

TEST(OpenConnectionsTest, OneIsEndedByThePeersName) {
  OpenConnections open;
  Connected first, second;
  open.Add(first.server);
  open.Add(second.server);
  sockaddr_in address = {};
  socklen_t size = sizeof(address);
  ASSERT_EQ(
      getsockname(second.client, reinterpret_cast<sockaddr*>(&address), &size),
      0);
  open.End("ipv4:127.0.0.1:1");
  EXPECT_EQ(open.size(), 2);
  open.End(absl::StrCat("ipv4:127.0.0.1:", ntohs(address.sin_port)));
  EXPECT_EQ(open.size(), 1);
  EXPECT_FALSE(first.has_ended());
  EXPECT_TRUE(second.has_ended());
}

TEST(OpenConnectionsTest, MeasuresWhatHasComeFromThoseThatAreOpen) {
  OpenConnections open;
  const ReceiveGuard guard({});
  Connected first, second;
  open.Add(first.server);
  open.Add(second.server);
  const std::string sent(1000, 'x');
  ASSERT_EQ(send(second.client, sent.data(), sent.size(), 0), 1000);
  std::vector<ReceiveGuard::Traffic> traffic = open.MeasureTraffic(guard);
  ASSERT_EQ(traffic.size(), 2u);
  EXPECT_EQ(traffic[0].received, 0);
  EXPECT_EQ(traffic[1].received, 1000);
  EXPECT_EQ(traffic[1].peer, server::PeerName(second.server));
  open.End(traffic[0].peer);
  EXPECT_EQ(open.MeasureTraffic(guard).size(), 1u);
}

class OpenCallsTest : public ChannelzTest {
 protected:
  // The descriptors of the server's connections.
  std::vector<int> Descriptors() const {
    std::vector<int> found;
    for (int fd = 0; fd < 1000; ++fd) {
      sockaddr_in own = {}, peer = {};
      socklen_t size = sizeof(own), peer_size = sizeof(peer);
      if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) == 0 &&
          getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) ==
              0 &&
          ntohs(own.sin_port) == port_) {
        found.push_back(fd);
      }
    }
    return found;
  }
};

TEST_F(OpenCallsTest, OneLookCountsTheCallsOfAFewConnections) {
  constexpr int kConnections = 3;
  struct Watching {
    std::unique_ptr<Health::Stub> stub;
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<HealthCheckResponse>> call;
  };
  Watching clients[kConnections];
  for (Watching& client : clients) {
    client.stub = NewConnection();
    const int64_t id = Check(*client.stub);
    client.call = client.stub->Watch(&client.context, HealthCheckRequest());
    Await(id, 2, 1, 0);
  }
  OpenConnections open;
  ReceiveGuard guard({});
  for (const int fd : Descriptors()) open.Add(fd);
  ASSERT_EQ(open.size(), kConnections);
  const std::string peer = service_.peer();  // The last client's.
  const int64_t id = channelz_.IdOf(peer);
  guard.CallCame(peer);
  for (const ReceiveGuard::Traffic& one : open.MeasureTraffic(guard)) {
    EXPECT_GT(one.received, 0);
    EXPECT_EQ(one.calls, 1);
    EXPECT_EQ(one.waiting, one.peer == peer ? 0 : 1);
    EXPECT_EQ(one.failed, 0);
  }
  for (Watching& client : clients) client.context.TryCancel();
  Await(id, 2, 1, 1);
  for (const ReceiveGuard::Traffic& one : open.MeasureTraffic(guard)) {
    if (one.peer != peer) continue;
    EXPECT_EQ(one.calls, 0);
    EXPECT_EQ(one.failed, 1);
  }
  for (Watching& client : clients) client.call->Finish();
}

// What it sends would otherwise wait for room until the kernel forgets it.
TEST(OpenConnectionsTest, APeerThatStillSendsIsToldOfTheEnd) {
  OpenConnections open;
  Connected connected;
  open.Add(connected.server);
  const std::string many(1 << 20, 'x');
  while (send(connected.client, many.data(), many.size(), MSG_DONTWAIT) > 0) {
  }
  open.End(server::PeerName(connected.server));
  // The owner of a connection reads until the end, then closes.
  std::string read(1 << 20, ' ');
  while (recv(connected.server, read.data(), read.size(), 0) > 0) {
  }
  close(connected.server);
  connected.server = -1;
  pollfd events = {connected.client, 0, 0};
  ASSERT_EQ(poll(&events, 1, /*timeout=*/10'000), 1);
  EXPECT_TRUE(events.revents & POLLERR);
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(connected.client, SOL_SOCKET, SO_ERROR, &error, &size);
  EXPECT_TRUE(error == ECONNRESET || error == EPIPE) << error;
}

}  // namespace
}  // namespace sfmamba::rpc
