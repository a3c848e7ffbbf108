#include "server/rpc/port/port_check.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "server/host/listening_sockets.h"

namespace sfmamba::rpc {
namespace {

TEST(PortCheckTest, OnlyFailuresInARowCountAndAreToldOnce) {
  std::vector<bool> answers = {false, false, true,  false, false,
                               false, false, false, false};
  size_t next = 0;
  std::vector<size_t> told;
  PortCheck check(
      [&] {
        return answers[next++] ? absl::OkStatus()
                               : absl::UnavailableError("deaf");
      },
      [&](const absl::Status& status) {
        EXPECT_EQ(status.message(), "deaf");
        told.push_back(next);
      });
  while (next < answers.size()) check.Run();
  EXPECT_EQ(told, (std::vector<size_t>{6}));
}

TEST(PortCheckTest, APortThatAnswersIsSpokenToFirst) {
  for (const bool tls : {false, true}) {
    const absl::StatusOr<server::ListeningSockets> sockets =
        server::ListeningSockets::Bind("a port", "127.0.0.1", 0);
    ASSERT_TRUE(sockets.ok()) << sockets.status();
    char first = 0;
    std::thread server([&] {
      pollfd waiting = {sockets->fds()[0], POLLIN, 0};
      poll(&waiting, 1, /*timeout=*/10'000);
      const int fd = accept(waiting.fd, nullptr, nullptr);
      EXPECT_EQ(recv(fd, &first, 1, 0), 1);
      EXPECT_EQ(send(fd, "x", 1, 0), 1);
      close(fd);
    });
    const absl::Status status =
        CallPort(sockets->LocalAddress(), tls, absl::Seconds(10));
    server.join();
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(first, tls ? '\x16' : 'P') << "a handshake, or HTTP/2's preface";
  }
}

// What a port looks like that listens, but whose server accepts no more.
TEST(PortCheckTest, APortThatNobodyAcceptsFromDoesNotAnswer) {
  const absl::StatusOr<server::ListeningSockets> sockets =
      server::ListeningSockets::Bind("a port", "127.0.0.1", 0);
  ASSERT_TRUE(sockets.ok()) << sockets.status();
  const std::string address = sockets->LocalAddress();
  const absl::Status status = CallPort(address, false, absl::Milliseconds(50));
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_NE(status.message().find(address), std::string::npos) << status;
}

TEST(PortCheckTest, NorOneWhoseBacklogIsFull) {
  const int full = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const name = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(full, name, size), 0);
  ASSERT_EQ(listen(full, /*backlog=*/0), 0);
  ASSERT_EQ(getsockname(full, name, &size), 0);
  const int first = socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(connect(first, name, size), 0);
  const absl::Time start = absl::Now();
  EXPECT_TRUE(absl::IsUnavailable(
      CallPort(absl::StrCat("127.0.0.1:", ntohs(address.sin_port)), false,
               absl::Milliseconds(50))));
  EXPECT_LT(absl::Now() - start, absl::Seconds(30));
  close(first);
  close(full);
}

TEST(PortCheckTest, NorByTls) {
  const absl::StatusOr<server::ListeningSockets> sockets =
      server::ListeningSockets::Bind("a port", "127.0.0.1", 0);
  ASSERT_TRUE(sockets.ok()) << sockets.status();
  const std::string address = sockets->LocalAddress();
  const absl::Status status = CallPort(address, true, absl::Milliseconds(50));
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_NE(status.message().find(address), std::string::npos) << status;
}

TEST(PortCheckTest, NothingAnswersWhereNobodyListens) {
  std::string address;
  {
    const auto sockets =
        server::ListeningSockets::Bind("a port", "127.0.0.1", 0);
    ASSERT_TRUE(sockets.ok()) << sockets.status();
    address = sockets->LocalAddress();
  }
  EXPECT_TRUE(absl::IsUnavailable(CallPort(address, true, absl::Seconds(5))));
}

}  // namespace
}  // namespace sfmamba::rpc
