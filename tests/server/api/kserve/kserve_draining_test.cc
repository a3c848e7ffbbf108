// Tests the Open Inference Protocol over gRPC on a server that drains.

#include <atomic>
#include <memory>

#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "inference/grpc_service.grpc.pb.h"
#include "server/api/kserve/kserve_methods.h"
#include "server/call/method_table.h"
#include "server/rpc/method_service.h"
#include "tests/server/api/kserve/kserve_fixture.h"
#include "tests/server/prediction/prediction_fixture.h"

namespace sfmamba::kserve {
namespace {

using grpc::StatusCode;

class KserveDrainingTest : public prediction::PredictionTest {
 protected:
  KserveDrainingTest() {
    KserveOptions options;
    options.draining = [this] { return draining_.load(); };
    methods_ = std::make_unique<call::MethodTable>(
        prediction::TransportEnvironment{*environment_},
        KserveMethods(options));
    service_ = std::make_unique<rpc::MethodService>(
        *methods_, "inference.GRPCInferenceService", absl::InfiniteDuration());
    grpc::ServerBuilder builder;
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    stub_ = inference::GRPCInferenceService::NewStub(
        server_->InProcessChannel(grpc::ChannelArguments()));
  }
  ~KserveDrainingTest() override { server_->Shutdown(); }

  server::Ending Infer() {
    grpc::ClientContext context;
    ModelInferResponse response;
    const grpc::Status status =
        stub_->ModelInfer(&context, Fp32Request(), &response);
    return server::EndingOf(status, &context);
  }

  std::atomic<bool> draining_{false};
  std::unique_ptr<call::MethodTable> methods_;
  std::unique_ptr<rpc::MethodService> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<inference::GRPCInferenceService::Stub> stub_;
};

TEST_F(KserveDrainingTest, CallsGoOnButNoModelIsReady) {
  EXPECT_EQ(Infer().code, StatusCode::OK);
  draining_ = true;
  service_->StartDraining();
  EXPECT_EQ(Infer().code, StatusCode::OK);
  grpc::ClientContext context, probe;
  inference::ModelMetadataRequest asked;
  asked.set_name("fake");
  inference::ModelMetadataResponse metadata;
  EXPECT_TRUE(stub_->ModelMetadata(&context, asked, &metadata).ok());
  inference::ModelReadyRequest model;
  model.set_name("fake");
  inference::ModelReadyResponse ready;
  EXPECT_TRUE(stub_->ModelReady(&probe, model, &ready).ok());
  EXPECT_FALSE(ready.ready());
}

}  // namespace
}  // namespace sfmamba::kserve
