// A KserveService that is being stopped, on a gRPC server of its own.

#include <memory>
#include <utility>

#include "grpcpp/grpcpp.h"
#include "inference/grpc_service.grpc.pb.h"
#include "server/kserve/kserve_service.h"
#include "tests/server/kserve/kserve_fixture.h"
#include "tests/server/prediction/prediction_fixture.h"

namespace sfmamba::kserve {
namespace {

using grpc::StatusCode;

class KserveDrainingTest : public prediction::PredictionTest {
 protected:
  KserveDrainingTest() {
    KserveService::Options options;
    options.live = [] { return true; };
    options.ready = [] { return true; };
    service_ = std::make_unique<KserveService>(
        prediction::TransportEnvironment{*environment_}, std::move(options));
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

  std::unique_ptr<KserveService> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<inference::GRPCInferenceService::Stub> stub_;
};

TEST_F(KserveDrainingTest, CallsGoOnButNoModelIsReady) {
  EXPECT_EQ(Infer().code, StatusCode::OK);
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
