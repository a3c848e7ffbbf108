// What a server does when its port takes no new connections any more.

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "tests/server/listeners.h"
#include "tests/server/running_server.h"
#include "tests/testing/patience.h"

namespace sfmamba::server {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

TEST(DeafPortTest, EndsTheServing) {
  const TimeLimit limit("the end of the test", kTestPatience);
  v1::ServerConfig config;
  config.set_model_repository(NewFolder("models"));
  WriteModel(config.model_repository(), "fake", "1");
  config.mutable_self_check_period()->set_nanos(1'000'000);
  config.set_health_port(0);
  RunningServer server(config);
  const auto liveness =
      [channel = grpc::CreateChannel(
           absl::StrCat("127.0.0.1:", server.server().health_port()),
           grpc::InsecureChannelCredentials())] {
        grpc::ClientContext context;
        HealthCheckRequest request;
        request.set_service("liveness");
        HealthCheckResponse response;
        EXPECT_TRUE(grpc::health::v1::Health::NewStub(channel)
                        ->Check(&context, request, &response)
                        .ok());
        return response.status();
      };
  EXPECT_EQ(liveness(), HealthCheckResponse::SERVING);
  ShutListeners(server.server().port());
  WaitUntil(
      [&] {
        return absl::StrContains(server.Log(), "told that the port failed");
      },
      "the end of the port");
  EXPECT_EQ(liveness(), HealthCheckResponse::NOT_SERVING);
  EXPECT_TRUE(absl::StrContains(server.Log(),
                                "the gRPC port takes no new connections"));
}

}  // namespace
}  // namespace sfmamba::server
