// Attacks with connections and streams. The server must still answer another
// client, and its memory must not grow with them.

#include <sys/stat.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "tests/e2e/raw_http2.h"
#include "tests/e2e/server_process.h"
#include "tests/e2e/victim.h"
#include "tests/testing/http.h"
#include "tests/testing/patience.h"

namespace sfmamba {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

constexpr int64_t kMiB = 1 << 20;

std::shared_ptr<grpc::Channel> NewChannel(const ServerProcess& server) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxSendMessageSize(-1);
  return grpc::CreateCustomChannel(
      server.address(), grpc::InsecureChannelCredentials(), arguments);
}

// Returns true if the server serves a new connection. Tries up to five times,
// like a health probe.
bool IsHealthy(const ServerProcess& server) {
  for (int i = 0; i < 5; ++i) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(2));
    HealthCheckResponse response;
    if (Health::NewStub(NewChannel(server))
            ->Check(&context, HealthCheckRequest(), &response)
            .ok()) {
      return response.status() == HealthCheckResponse::SERVING;
    }
  }
  return false;
}

// Writes a program that runs the server with at most `descriptors` descriptors.
std::string LimitedServer(int descriptors) {
  const std::string path = testing::TempDir() + "/limited_server.sh";
  std::ofstream(path) << "#!/bin/sh\nulimit -n " << descriptors
                      << "\nexec server/sfmamba_server \"$@\"\n";
  chmod(path.c_str(), 0755);
  return path;
}

void ExpectAnswered(Victim& victim) {
  const Victim::Count count = victim.Stop();
  EXPECT_GE(count.answered, 0.95 * count.sent)
      << "of " << count.sent << ": " << count.first_error;
}

TEST(ConnectionAttackTest, MoreConnectionsThanDescriptorsLeaveItNotDeaf) {
  ServerProcess server({"--model_repository=" + WriteTinyModel()},
                       LimitedServer(1024));
  ASSERT_TRUE(server.WaitUntilServing()) << server.output();
  Victim victim(server);
  for (int round = 0; round < 3; ++round) {
    std::vector<RawConnection> connections;
    for (int i = 0; i < 1200; ++i) {
      connections.emplace_back(server.port());
      ASSERT_TRUE(connections.back().connected());
      connections.back().Send(Http2Preface());
    }
    EXPECT_TRUE(IsHealthy(server)) << "while they are open";
  }
  EXPECT_TRUE(IsHealthy(server)) << "after they were closed";
  ExpectAnswered(victim);
  EXPECT_GT(SumOf(Samples(HttpGet(server.metrics_port(), "/metrics")),
                  "sfmamba_connections_refused_total", {R"(port="grpc")"}),
            0);
}

TEST(ConnectionAttackTest, ConnectionsThatAreSilentGiveWay) {
  ServerProcess server(
      {"--model_repository=" + WriteTinyModel(), "--max_connections=50"});
  ASSERT_TRUE(server.WaitUntilServing()) << server.output();
  Victim victim(server);
  std::vector<RawConnection> connections;
  for (int i = 0; i < 200; ++i) connections.emplace_back(server.port());
  EXPECT_TRUE(IsHealthy(server));
  TimeLimit limit("the end of the first connection");
  connections.front().WaitForEnd();
  ExpectAnswered(victim);
}

TEST(ConnectionAttackTest, WatchesWithLongNamesAreRefused) {
  ServerProcess server(
      {"--model_repository=" + WriteTinyModel(), "--max_health_watches=10"});
  ASSERT_TRUE(server.WaitUntilServing()) << server.output();
  const int64_t before = server.resident_bytes();
  Victim victim(server);
  const auto stub = Health::NewStub(NewChannel(server));
  HealthCheckRequest request;
  request.set_service(std::string(30 * kMiB, 'x'));
  for (int i = 0; i < 20; ++i) {
    grpc::ClientContext context;
    const auto watch = stub->Watch(&context, request);
    HealthCheckResponse response;
    EXPECT_FALSE(watch->Read(&response));
    EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
  EXPECT_LT(server.resident_bytes(), before + 200 * kMiB);
  ExpectAnswered(victim);
}

}  // namespace
}  // namespace sfmamba
