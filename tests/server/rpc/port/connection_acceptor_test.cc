#include "server/rpc/port/connection_acceptor.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"

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
  void AwaitOne() {
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(
        +[](std::vector<int>* fds) { return !fds->empty(); }, &fds_));
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

TEST(ConnectionAcceptorTest, WithNothingToCheckItSleeps) {
  auto sockets = server::ListeningSockets::Bind("port", "127.0.0.1", 0);
  ASSERT_TRUE(sockets.ok()) << sockets.status();
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(sockets->port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  KeptConnections kept;
  ConnectionAcceptor::Options options;
  options.max_connections = 10;
  options.max_descriptor = 1000;
  ReceiveGuard receives({/*most_bytes=*/1 << 30});
  const CallCounts calls;
  options.receives = &receives;
  options.calls = &calls;
  const ConnectionAcceptor acceptor(options, *std::move(sockets),
                                    std::make_unique<FakeAcceptor>(&kept));
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(connect(client, reinterpret_cast<const sockaddr*>(&address),
                    sizeof(address)),
            0);
  kept.AwaitOne();
  const absl::Duration before = ProcessorTime();
  absl::SleepFor(absl::Milliseconds(300));
  EXPECT_LT(ProcessorTime() - before, absl::Milliseconds(30));
  close(client);
}

}  // namespace
}  // namespace sfmamba::rpc
