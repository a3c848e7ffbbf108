// Which of the server's ports reflection is served at.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "tests/server/vision_service_fixture.h"

namespace sfmamba::rpc {
namespace {

using grpc::StatusCode;

class ReflectionPortsTest : public server::VisionServiceTest {
 protected:
  // What a request for the names of the services ends with.
  StatusCode List(const std::shared_ptr<grpc::Channel>& channel) {
    grpc::ClientContext context;
    const auto stub =
        grpc::reflection::v1alpha::ServerReflection::NewStub(channel);
    const auto stream = stub->ServerReflectionInfo(&context);
    grpc::reflection::v1alpha::ServerReflectionRequest request;
    request.set_list_services("");
    stream->Write(request);
    stream->WritesDone();
    grpc::reflection::v1alpha::ServerReflectionResponse response;
    names_.clear();
    while (stream->Read(&response)) {
      for (const auto& service : response.list_services_response().service()) {
        names_.push_back(service.name());
      }
    }
    return stream->Finish().error_code();
  }
  static std::shared_ptr<grpc::Channel> Connect(int port) {
    return grpc::CreateChannel(absl::StrCat("127.0.0.1:", port),
                               grpc::InsecureChannelCredentials());
  }

  std::vector<std::string> names_;
};

TEST_F(ReflectionPortsTest, ItListsTheServicesOfItsPort) {
  Start();
  EXPECT_EQ(List(server_->channel()), StatusCode::OK);
  std::vector<std::string> names = {
      "sfmamba.v1.VisionService", "inference.GRPCInferenceService",
      "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection",
      "sfmamba.v1.AdminService"};
  EXPECT_EQ(names_, names);
  v1::ServerConfig config;
  config.set_admin_port(0);
  Start("", config);
  EXPECT_EQ(List(server_->channel()), StatusCode::OK);
  names.pop_back();
  EXPECT_EQ(names_, names);
}

TEST_F(ReflectionPortsTest, OtherPortsHaveNone) {
  v1::ServerConfig config;
  config.set_health_port(0);
  config.set_admin_port(0);
  Start("", config);
  EXPECT_EQ(List(Connect(server_->server().health_port())),
            StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(List(Connect(server_->server().admin_port())),
            StatusCode::UNIMPLEMENTED);
}

TEST_F(ReflectionPortsTest, AnOpenStreamIsToldThatTheServerEnds) {
  for (const bool drains : {false, true}) {
    Start();
    grpc::ClientContext context;
    const auto stub = grpc::reflection::v1alpha::ServerReflection::NewStub(
        server_->channel());
    const auto stream = stub->ServerReflectionInfo(&context);
    grpc::reflection::v1alpha::ServerReflectionRequest request;
    request.set_list_services("");
    stream->Write(request);
    grpc::reflection::v1alpha::ServerReflectionResponse response;
    EXPECT_TRUE(stream->Read(&response));
    if (drains) {
      EXPECT_TRUE(server_->server().Shutdown());
    }
    server_ = nullptr;
    EXPECT_EQ(server::EndingOf(stream->Finish()).reason, "DRAINING") << drains;
  }
}

TEST_F(ReflectionPortsTest, ItCanBeSwitchedOff) {
  v1::ServerConfig config;
  config.set_disable_reflection(true);
  Start("", config);
  EXPECT_EQ(List(server_->channel()), StatusCode::UNIMPLEMENTED);
  ExpectAlive();
}

}  // namespace
}  // namespace sfmamba::rpc
