#include "server/rpc/port/grpc_port.h"

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "server/rpc/health.h"
#include "server/security/tls_identity.h"
#include "server/server_config.h"
#include "sfmamba/v1/vision.grpc.pb.h"
#include "tests/testing/certificates.h"
#include "tests/testing/patience.h"

namespace sfmamba::rpc {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

class GrpcPortTest : public testing::Test {
 protected:
  GrpcPort::Options Options() {
    GrpcPort::Options options;
    options.config = server::WithDefaults({});
    options.services = {&health_};
    return options;
  }

  // Returns a deadline for everything that a test waits for.
  static std::chrono::system_clock::time_point Soon() {
    return absl::ToChronoTime(absl::Now() + absl::Seconds(20));
  }
  // Returns a channel that shares its connection with no other channel. It
  // connects when it is first used.
  static std::shared_ptr<grpc::Channel> Connect(int port) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", port),
                                     grpc::InsecureChannelCredentials(),
                                     arguments);
  }
  // Calls Check() on a new connection. If `authority` is given, the connection
  // uses TLS and the client sends the certificate `own`.
  static grpc::Status Call(int port, const Certificate* authority = nullptr,
                           const Certificate& own = {}) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto stub = Health::NewStub(grpc::CreateCustomChannel(
        absl::StrCat("127.0.0.1:", port),
        authority == nullptr
            ? grpc::InsecureChannelCredentials()
            : grpc::SslCredentials({authority->pem, own.key, own.pem}),
        arguments));
    grpc::ClientContext context;
    context.set_deadline(Soon());
    HealthCheckRequest request;
    request.set_service("liveness");
    HealthCheckResponse response;
    return stub->Check(&context, request, &response);
  }

  HealthService health_{[] { return true; }, 4};
};

TEST_F(GrpcPortTest, ServesItsServices) {
  const auto port = GrpcPort::Start(Options());
  ASSERT_TRUE(port.ok()) << port.status();
  EXPECT_TRUE(Call((*port)->port()).ok());
}

TEST_F(GrpcPortTest, ConnectionsEndAtTheirAgeOrWhenTheyAreIdle) {
  for (const bool by_age : {true, false}) {
    GrpcPort::Options options = Options();
    (by_age ? options.config.mutable_max_connection_age()
            : options.config.mutable_max_connection_idle())
        ->set_nanos(200'000'000);
    const auto port = GrpcPort::Start(options);
    ASSERT_TRUE(port.ok()) << port.status();
    const auto channel =
        grpc::CreateChannel(absl::StrCat("127.0.0.1:", (*port)->port()),
                            grpc::InsecureChannelCredentials());
    EXPECT_TRUE(channel->WaitForConnected(Soon()));
    EXPECT_TRUE(channel->WaitForStateChange(GRPC_CHANNEL_READY, Soon()))
        << by_age;
  }
}

// Starts a port while this process may have at most `descriptors` file
// descriptors.
absl::StatusOr<std::unique_ptr<GrpcPort>> StartWith(
    int descriptors, const GrpcPort::Options& options) {
  rlimit before = {};
  EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit fewer = before;
  fewer.rlim_cur = descriptors;
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &fewer), 0);
  auto port = GrpcPort::Start(options);
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  return port;
}

TEST_F(GrpcPortTest, TakesAsManyConnectionsAsDescriptorsAreLeftByOthers) {
  // The number of file descriptors that remain for other uses than connections.
  constexpr int kOthers = 384;
  const std::pair<int, int> kCases[] = {{kOthers + 2, 2}, {kOthers - 50, 1}};
  for (const auto& [descriptors, most] : kCases) {
    std::atomic<int> refused{0};
    GrpcPort::Options options = Options();
    options.refused = [&refused] { ++refused; };
    const auto port = StartWith(descriptors, options);
    ASSERT_TRUE(port.ok()) << port.status();
    std::vector<std::shared_ptr<grpc::Channel>> channels;
    for (int i = 0; i <= most; ++i) {
      EXPECT_EQ(refused, 0) << most;
      channels.push_back(Connect((*port)->port()));
      EXPECT_TRUE(channels.back()->WaitForConnected(Soon()));
    }
    EXPECT_GE(refused, 1) << most;
  }
}

TEST_F(GrpcPortTest, TheLastDescriptorsAreNotForConnections) {
  constexpr int kDescriptors = 600;
  // The number of descriptors that connections must not use. These are the
  // descriptors with the highest numbers.
  constexpr int kSpare = 64;
  std::atomic<int> refused{0};
  GrpcPort::Options options = Options();
  options.refused = [&refused] { ++refused; };
  const auto port = StartWith(kDescriptors, options);
  ASSERT_TRUE(port.ok()) << port.status();
  std::vector<int> taken = {dup(STDERR_FILENO)};
  while (taken.back() < kDescriptors - kSpare) {
    taken.push_back(dup(STDERR_FILENO));
  }
  EXPECT_EQ(Call((*port)->port()).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_GE(refused, 1);
  for (const int fd : taken) close(fd);
  EXPECT_TRUE(Call((*port)->port()).ok());
}

// If gRPC has no memory for the transport, it ends calls. A call may be
// answered before gRPC ends it, so the test makes several calls.
TEST_F(GrpcPortTest, WithoutMemoryForTheTransportFewCallsAreAnswered) {
  GrpcPort::Options options = Options();
  options.transport_bytes = 0;
  const auto port = GrpcPort::Start(options);
  ASSERT_TRUE(port.ok()) << port.status();
  WaitUntil(
      [&] {
        const auto stub = Health::NewStub(Connect((*port)->port()));
        grpc::ClientContext context;
        context.set_deadline(
            absl::ToChronoTime(absl::Now() + absl::Milliseconds(500)));
        HealthCheckResponse response;
        return stub->Check(&context, {}, &response).error_code() !=
               grpc::StatusCode::NOT_FOUND;
      },
      "a call that is not answered");
}

TEST_F(GrpcPortTest, TakesNoConnectionOnceItHasStoppedListening) {
  const auto port = GrpcPort::Start(Options());
  ASSERT_TRUE(port.ok()) << port.status();
  (*port)->StopListening();
  EXPECT_EQ(Call((*port)->port()).error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(GrpcPortTest, TwoPortsOfOneProcessServeEachItsOwn) {
  const auto first = GrpcPort::Start(Options());
  GrpcPort::Options options = Options();
  v1::VisionService::CallbackService other;
  options.services = {&other};
  const auto second = GrpcPort::Start(options);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_TRUE(Call((*first)->port()).ok());
  EXPECT_EQ(Call((*second)->port()).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(GrpcPortTest, EachConnectionBeginsWithTheIdentityOfThatTime) {
  const Certificate first = MakeCertificate(), second = MakeCertificate();
  security::CurrentTlsIdentity identity;
  identity.Set(*security::MakeTlsIdentity(first.pem, first.key, ""));
  GrpcPort::Options options = Options();
  options.tls = &identity;
  const auto port = GrpcPort::Start(options);
  ASSERT_TRUE(port.ok()) << port.status();
  EXPECT_TRUE(Call((*port)->port(), &first).ok());
  EXPECT_EQ(Call((*port)->port(), &second).error_code(),
            grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Call((*port)->port()).error_code(), grpc::StatusCode::UNAVAILABLE);
  identity.Set(*security::MakeTlsIdentity(second.pem, second.key, ""));
  EXPECT_TRUE(Call((*port)->port(), &second).ok());
  EXPECT_EQ(Call((*port)->port(), &first).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

TEST_F(GrpcPortTest, ClientsMayOrMustShowACertificate) {
  const Certificate own = MakeCertificate();
  security::CurrentTlsIdentity identity;
  identity.Set(*security::MakeTlsIdentity(own.pem, own.key, own.pem));
  GrpcPort::Options options = Options();
  options.tls = &identity;
  for (const bool optional : {false, true}) {
    options.config.set_tls_client_optional(optional);
    const auto port = GrpcPort::Start(options);
    ASSERT_TRUE(port.ok()) << port.status();
    EXPECT_TRUE(Call((*port)->port(), &own, own).ok()) << optional;
    EXPECT_EQ(Call((*port)->port(), &own).ok(), optional);
    EXPECT_FALSE(Call((*port)->port(), &own, MakeCertificate()).ok());
  }
}

TEST_F(GrpcPortTest, ServiceMayBeServedAtTwoPorts) {
  const auto first = GrpcPort::Start(Options());
  const auto second = GrpcPort::Start(Options());
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_TRUE(Call((*first)->port()).ok());
  EXPECT_TRUE(Call((*second)->port()).ok());
}

TEST_F(GrpcPortTest, ErrorNamesThePortThatIsTaken) {
  const auto first = GrpcPort::Start(Options());
  ASSERT_TRUE(first.ok()) << first.status();
  GrpcPort::Options options = Options();
  options.what = "the other port";
  options.port = (*first)->port();
  const absl::Status status = GrpcPort::Start(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("the other port"), std::string::npos);
  EXPECT_NE(status.message().find(absl::StrCat(options.port)),
            std::string::npos);
}

}  // namespace
}  // namespace sfmamba::rpc
