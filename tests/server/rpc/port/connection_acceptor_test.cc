#include "server/rpc/port/connection_acceptor.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/steady_clock.h"
#include "gtest/gtest.h"
#include "server/rpc/port/read_pauses.h"
#include "tests/testing/patience.h"

namespace sfmamba::rpc {
namespace {

// Keeps the connections that it is given, as gRPC would.
class KeptConnections {
 public:
  ~KeptConnections() {
    for (const int fd : fds_) close(fd);
  }
  void Add(int fd) {
    absl::MutexLock lock(&mu_);
    fds_.push_back(fd);
  }
  // Waits until there are `count` and returns their peers' ports, in the order
  // in which they came.
  std::vector<int> AwaitPorts(int count) {
    const auto enough = [&] { return fds_.size() >= count; };
    absl::MutexLock lock(&mu_);
    EXPECT_TRUE(mu_.AwaitWithTimeout(absl::Condition(&enough), kTestPatience));
    std::vector<int> ports;
    for (const int fd : fds_) {
      sockaddr_in peer = {};
      socklen_t size = sizeof(peer);
      getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size);
      ports.push_back(ntohs(peer.sin_port));
    }
    return ports;
  }
  // TCP's option of the first.
  int Option(int name) {
    absl::MutexLock lock(&mu_);
    int value = -1;
    socklen_t size = sizeof(value);
    getsockopt(fds_.at(0), IPPROTO_TCP, name, &value, &size);
    return value;
  }

 private:
  absl::Mutex mu_;
  std::vector<int> fds_;
};

class FakeAcceptor final : public ConnectionAcceptor::Acceptor {
 public:
  explicit FakeAcceptor(KeptConnections* kept) : kept_(*kept) {}
  void HandleNewConnection(NewConnectionParameters* connection) override {
    kept_.Add(connection->fd);
  }

 private:
  KeptConnections& kept_;
};

// What all threads of this process have computed.
absl::Duration ProcessorTime() {
  timespec time;
  EXPECT_EQ(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time), 0);
  return absl::DurationFromTimespec(time);
}

class ConnectionAcceptorTest : public testing::Test {
 protected:
  ConnectionAcceptorTest() {
    auto sockets = server::ListeningSockets::Bind("port", "127.0.0.1", 0);
    EXPECT_TRUE(sockets.ok()) << sockets.status();
    port_ = sockets->port();
    ConnectionAcceptor::Options options;
    options.max_connections = 10;
    options.max_descriptor = 1000;
    options.receives = &receives_;
    acceptor_.emplace(options, *std::move(sockets),
                      std::make_unique<FakeAcceptor>(&kept_));
  }
  ~ConnectionAcceptorTest() override {
    for (const int client : clients_) close(client);
  }

  // Returns the descriptor of a new connection over which `bytes` were sent.
  int Connect(size_t bytes) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int client = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(connect(client, reinterpret_cast<const sockaddr*>(&address),
                      sizeof(address)),
              0);
    const std::string sent(bytes, 'a');
    EXPECT_EQ(send(client, sent.data(), bytes, 0), bytes);
    clients_.push_back(client);
    return client;
  }
  static int PortOf(int client) {
    sockaddr_in own = {};
    socklen_t size = sizeof(own);
    getsockname(client, reinterpret_cast<sockaddr*>(&own), &size);
    return ntohs(own.sin_port);
  }

  KeptConnections kept_;
  ReceiveGuard receives_{{/*most_bytes=*/1 << 30}};
  int port_ = 0;
  std::vector<int> clients_;
  std::optional<ConnectionAcceptor> acceptor_;
};

// R5.
TEST_F(ConnectionAcceptorTest, WithNothingToCheckItSleeps) {
  Connect(0);
  kept_.AwaitPorts(1);
  const absl::Duration before = ProcessorTime();
  absl::SleepFor(absl::Milliseconds(300));
  EXPECT_LT(ProcessorTime() - before, absl::Milliseconds(30));
}

TEST_F(ConnectionAcceptorTest, ConnectionsSendAtOnceAndGiveUpInTime) {
  Connect(0);
  kept_.AwaitPorts(1);
  EXPECT_NE(kept_.Option(TCP_NODELAY), 0);
  EXPECT_EQ(kept_.Option(TCP_USER_TIMEOUT), 20'000) << "milliseconds";
}

TEST_F(ConnectionAcceptorTest, WhoHasSentLeastWaitsLeastForTheEndOfABan) {
  const absl::Time begin = base::SteadyNow();
  ReadPauses::Get().Ban("ipv4:127.0.0.1:1");
  const int floods = Connect(100'000);
  const int polite = Connect(100);
  EXPECT_EQ(kept_.AwaitPorts(2),
            (std::vector<int>{PortOf(polite), PortOf(floods)}));
  EXPECT_GE(base::SteadyNow() - begin, ReadPauses::kBan);
}

TEST_F(ConnectionAcceptorTest, WhoHasGoneWaitsNoMore) {
  ReadPauses::Get().Ban("ipv4:127.0.0.1:1");
  for (int i = 0; i < 4; ++i) {
    close(Connect(10));
    clients_.pop_back();
  }
  const int polite = Connect(100);
  EXPECT_EQ(kept_.AwaitPorts(1), std::vector<int>{PortOf(polite)});
}

}  // namespace
}  // namespace sfmamba::rpc
