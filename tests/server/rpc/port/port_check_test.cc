#include "server/rpc/port/port_check.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
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
