#include "server/rpc/method_service.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "server/call/method_table.h"
#include "tests/server/prediction/prediction_fixture.h"

namespace sfmamba::rpc {
namespace {

using Environment = prediction::TransportEnvironment;

// A gRPC server with only one method, "/Service/Method".
class MethodServiceTest : public prediction::PredictionTest {
 protected:
  // Makes a call that `handle` answers and returns its status.
  grpc::Status Call(call::Handler handle) {
    const call::MethodTable table(
        Environment{*environment_},
        {{"Service/Method", "", security::Scope::kRead,
          observability::Method::kGetModel, std::move(handle)}});
    MethodService service(table, "Service", absl::InfiniteDuration());
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port);
    builder.RegisterService(&service);
    const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    grpc::GenericStub stub(
        grpc::CreateChannel("127.0.0.1:" + std::to_string(port),
                            grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    const grpc::Slice slice("request");
    grpc::ByteBuffer request(&slice, 1), response;
    grpc::CompletionQueue done;
    grpc::Status status;
    const auto call =
        stub.PrepareUnaryCall(&context, "/Service/Method", request, &done);
    call->StartCall();
    call->Finish(&response, &status, &status);
    void* tag;
    bool ok;
    EXPECT_TRUE(done.Next(&tag, &ok));
    return status;
  }
};

TEST_F(MethodServiceTest, AHandlerAnswersACall) {
  EXPECT_EQ(Call([](const Environment&, observability::Method,
                    std::unique_ptr<call::Call> call) {
              call->Finish(absl::NotFoundError("no model"), nullptr);
            }).error_message(),
            "no model");
}

TEST_F(MethodServiceTest, ACallThatNobodyAnswersIsAnError) {
  EXPECT_EQ(Call([](const Environment&, observability::Method,
                    std::unique_ptr<call::Call>) {
            }).error_code(),
            grpc::StatusCode::INTERNAL);
}

}  // namespace
}  // namespace sfmamba::rpc
