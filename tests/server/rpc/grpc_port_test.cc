#include "server/rpc/grpc_port.h"

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "server/rpc/health.h"
#include "server/server_config.h"

namespace sfmamba::rpc {
namespace {

class GrpcPortTest : public testing::Test {
 protected:
  GrpcPort::Options Options() {
    GrpcPort::Options options;
    options.config = server::WithDefaults({});
    options.services = {&health_};
    return options;
  }

  // Of a new connection.
  static grpc::Status Call(int port) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto stub =
        grpc::health::v1::Health::NewStub(grpc::CreateCustomChannel(
            absl::StrCat("127.0.0.1:", port),
            grpc::InsecureChannelCredentials(), arguments));
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(20)));
    grpc::health::v1::HealthCheckRequest request;
    request.set_service("liveness");
    grpc::health::v1::HealthCheckResponse response;
    return stub->Check(&context, request, &response);
  }

  HealthService health_{[] { return true; }, 4};
};

TEST_F(GrpcPortTest, ServesItsServices) {
  const auto port = GrpcPort::Start(Options());
  ASSERT_TRUE(port.ok()) << port.status();
  EXPECT_TRUE(Call((*port)->port()).ok());
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
  options.services = {};
  const auto second = GrpcPort::Start(options);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_TRUE(Call((*first)->port()).ok());
  EXPECT_EQ(Call((*second)->port()).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
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
