// Tests Watch calls from several clients. gRPC tells the server which client
// makes a call.

#include <unistd.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "server/rpc/health.h"
#include "tests/testing/patience.h"

namespace sfmamba::rpc {
namespace {

using grpc::StatusCode;
using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// A Watch call for liveness. The constructor waits for the first answer.
class Watch {
 public:
  explicit Watch(Health::Stub& stub) {
    HealthCheckRequest request;
    request.set_service("liveness");
    reader_ = stub.Watch(&context_, request);
    HealthCheckResponse response;
    EXPECT_TRUE(reader_->Read(&response));
  }
  ~Watch() {
    if (reader_ == nullptr) return;
    context_.TryCancel();
    reader_->Finish();
  }

  // Waits for the next answer and returns it.
  HealthCheckResponse::ServingStatus Next() {
    HealthCheckResponse response;
    EXPECT_TRUE(reader_->Read(&response)) << "the watch has ended";
    return response.status();
  }
  // Waits until the call has ended and returns its status code.
  StatusCode End() {
    HealthCheckResponse response;
    EXPECT_FALSE(reader_->Read(&response));
    const StatusCode code = reader_->Finish().error_code();
    reader_ = nullptr;
    return code;
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<HealthCheckResponse>> reader_;
};

class HealthClientsTest : public testing::Test {
 protected:
  HealthClientsTest() {
    const std::string socket = absl::StrCat("unix-abstract:health-", getpid());
    const auto credentials = grpc::InsecureServerCredentials();
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", credentials, &port);
    builder.AddListeningPort(socket, credentials);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    const auto connect = [](const std::string& address) {
      return Health::NewStub(
          grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
    };
    remote_ = connect(absl::StrCat("127.0.0.1:", port));
    local_ = connect(socket);
  }

  const TimeLimit limit_{"the end of the test"};
  HealthService service_{[] { return true; }, /*max_watches=*/3};
  std::unique_ptr<grpc::Server> server_;
  // The server sees two clients.
  std::unique_ptr<Health::Stub> remote_, local_;
};

TEST_F(HealthClientsTest, TheOldestOfTheClientWithMostWatchesGivesWay) {
  Watch first(*remote_), second(*remote_), third(*remote_);
  Watch other(*local_);
  EXPECT_EQ(first.End(), StatusCode::RESOURCE_EXHAUSTED);
  Watch fourth(*remote_);
  EXPECT_EQ(second.End(), StatusCode::RESOURCE_EXHAUSTED);
  service_.Fail();
  for (Watch* watch : {&third, &fourth, &other}) {
    EXPECT_EQ(watch->Next(), HealthCheckResponse::NOT_SERVING);
  }
}

}  // namespace
}  // namespace sfmamba::rpc
