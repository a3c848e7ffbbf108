#include "server/rpc/port/connection_acceptor.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/steady_clock.h"
#include "gtest/gtest.h"
#include "tests/testing/patience.h"

namespace sfmamba::rpc {
namespace {

// Stores accepted connections and keeps them open, like gRPC.
class KeptConnections {
 public:
  ~KeptConnections() {
    for (const int fd : fds_) close(fd);
  }
  void Add(int fd) {
    absl::MutexLock lock(&mu_);
    fds_.push_back(fd);
  }
  // Waits until there are `count` connections. Returns the ports of their
  // clients, in the order of acceptance.
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
  // Returns the value of a TCP option of the first connection.
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

// Returns the CPU time that all threads of this process have used.
absl::Duration ProcessorTime() {
  timespec time;
  EXPECT_EQ(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time), 0);
  return absl::DurationFromTimespec(time);
}

class ConnectionAcceptorTest : public testing::Test {
 protected:
  static constexpr int kMostConnections = 10;
  static constexpr int kMostDescriptor = 1000;

  ConnectionAcceptorTest() {
    auto sockets = server::ListeningSockets::Bind("port", "127.0.0.1", 0);
    EXPECT_TRUE(sockets.ok()) << sockets.status();
    port_ = sockets->port();
    ConnectionAcceptor::Options options;
    options.max_connections = kMostConnections;
    options.max_descriptor = kMostDescriptor;
    options.refused = [this] { ++refused_; };
    acceptor_.emplace(options, *std::move(sockets),
                      std::make_unique<FakeAcceptor>(&kept_));
  }
  ~ConnectionAcceptorTest() override {
    for (const int client : clients_) close(client);
  }

  void Connect() { Connect(socket(AF_INET, SOCK_STREAM, 0)); }
  void Connect(int client) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(client, reinterpret_cast<const sockaddr*>(&address),
                      sizeof(address)),
              0);
    clients_.push_back(client);
  }
  static int PortOf(int client) {
    sockaddr_in own = {};
    socklen_t size = sizeof(own);
    getsockname(client, reinterpret_cast<sockaddr*>(&own), &size);
    return ntohs(own.sin_port);
  }

  // Returns how many of the clients' connections end. Waits at most `limit`.
  int CountEnded(absl::Duration limit) const {
    std::vector<pollfd> ends;
    for (const int client : clients_) ends.push_back({client, POLLRDHUP, 0});
    return poll(ends.data(), ends.size(), absl::ToInt64Milliseconds(limit));
  }

  KeptConnections kept_;
  std::atomic<int> refused_{0};
  int port_ = 0;
  std::vector<int> clients_;
  std::optional<ConnectionAcceptor> acceptor_;
};

TEST_F(ConnectionAcceptorTest, WithoutEventsItSleeps) {
  Connect();
  kept_.AwaitPorts(1);
  const absl::Duration before = ProcessorTime();
  absl::SleepFor(absl::Milliseconds(300));
  EXPECT_LT(ProcessorTime() - before, absl::Milliseconds(30));
  EXPECT_EQ(refused_, 0);
}

TEST_F(ConnectionAcceptorTest, OneTooManyEndsTheMostSilent) {
  for (int i = 0; i < kMostConnections; ++i) Connect();
  kept_.AwaitPorts(kMostConnections);
  EXPECT_EQ(CountEnded(absl::ZeroDuration()), 0);
  EXPECT_EQ(refused_, 0);
  Connect();
  kept_.AwaitPorts(kMostConnections + 1);
  EXPECT_EQ(CountEnded(kPatience), 1);
  EXPECT_EQ(refused_, 1);
}

TEST_F(ConnectionAcceptorTest, SomeDescriptorsAreLeftForOthers) {
  std::vector<int> taken = {dup(STDERR_FILENO)};
  while (taken.back() <= kMostDescriptor) taken.push_back(dup(STDERR_FILENO));
  const auto give_back = [&taken](int number) {
    taken.erase(std::find(taken.begin(), taken.end(), number));
    close(number);
  };
  give_back(kMostDescriptor - 2);  // The client's socket needs this descriptor.
  // The accepted connection needs this descriptor.
  give_back(kMostDescriptor - 1);
  Connect();
  kept_.AwaitPorts(1);
  EXPECT_EQ(refused_, 0);
  give_back(kMostDescriptor - 3);
  give_back(kMostDescriptor);
  Connect();
  EXPECT_EQ(CountEnded(kPatience), 1);
  EXPECT_EQ(refused_, 1);
  for (const int fd : taken) close(fd);
}

// If no descriptor is left, accepting fails. The acceptor then ends one open
// connection, if there is one, and tries again 50 ms later.
TEST_F(ConnectionAcceptorTest, WithoutDescriptorsItTriesAgainNowAndThen) {
  Connect();
  kept_.AwaitPorts(1);
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  // With this limit, no descriptor can be opened besides the three standard
  // streams. Descriptors that are open already stay open.
  none.rlim_cur = 3;
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const absl::Time begin = base::SteadyNow();
  Connect(client);
  WaitUntil([this] { return refused_ >= 4; }, "four tries");
  EXPECT_GE(base::SteadyNow() - begin, 3 * absl::Milliseconds(50));
  EXPECT_EQ(CountEnded(absl::ZeroDuration()), 1);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(kept_.AwaitPorts(2).back(), PortOf(client));
}

TEST_F(ConnectionAcceptorTest, ConnectionsSendAtOnceAndGiveUpInTime) {
  Connect();
  kept_.AwaitPorts(1);
  EXPECT_NE(kept_.Option(TCP_NODELAY), 0);
  EXPECT_EQ(kept_.Option(TCP_USER_TIMEOUT), 20'000) << "milliseconds";
}

}  // namespace
}  // namespace sfmamba::rpc
