// Tests a guarded server: which callers it refuses with which code, and how
// token changes affect callers.

#include <signal.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "inference/grpc_service.grpc.pb.h"
#include "sfmamba/v1/admin.pb.h"
#include "tests/e2e/security/security_fixture.h"

namespace sfmamba {
namespace {

TEST_F(SecurityTest, WhoMayNotCallIsToldWhy) {
  Start({TokenFlag(ClientText("camera", "one", "INFER") +
                   ClientText("reader", "two", "READ"))});
  const auto channel = Connect();
  EXPECT_TRUE(Classify(channel, "one").ok());
  EXPECT_TRUE(List(channel, "two").ok());
  EXPECT_REFUSED(Classify(channel, ""), UNAUTHENTICATED, "TOKEN_INVALID");
  EXPECT_REFUSED(Classify(channel, "three"), UNAUTHENTICATED, "TOKEN_INVALID");
  EXPECT_REFUSED(Classify(channel, "two"), PERMISSION_DENIED, "SCOPE_MISSING");
  EXPECT_REFUSED(List(channel, "one"), PERMISSION_DENIED, "SCOPE_MISSING");
  EXPECT_TRUE(Health(channel).ok());
  EXPECT_EQ(Sum("sfmamba_unauthorized_total", {R"(reason="TOKEN_INVALID")"}),
            2);
  EXPECT_EQ(Sum("sfmamba_unauthorized_total", {R"(reason="SCOPE_MISSING")"}),
            2);
  EXPECT_EQ(Sum("sfmamba_requests_total", {R"(reason="TOKEN_INVALID")"}), 2);
  server_->Signal(SIGTERM);
  EXPECT_EQ(server_->Wait(), 0);
  EXPECT_TRUE(absl::StrContains(server_->output(), R"("client":"camera")"));
  EXPECT_FALSE(absl::StrContains(server_->output(), "three"));
}

// Asks the reflection service for the names of all services. Returns the call's
// status.
grpc::Status ListServices(const std::shared_ptr<grpc::Channel>& channel,
                          std::vector<std::string>* names) {
  using grpc::reflection::v1alpha::ServerReflection;
  grpc::ClientContext context;
  AddToken("one", &context);
  const auto stub = ServerReflection::NewStub(channel);
  const auto stream = stub->ServerReflectionInfo(&context);
  grpc::reflection::v1alpha::ServerReflectionRequest request;
  request.set_list_services("");
  stream->Write(request);
  stream->WritesDone();
  grpc::reflection::v1alpha::ServerReflectionResponse response;
  while (stream->Read(&response)) {
    for (const auto& service : response.list_services_response().service()) {
      names->push_back(service.name());
    }
  }
  return stream->Finish();
}

TEST_F(SecurityTest, ReflectionIsServedWhereNoTokensAreNeeded) {
  Start({});
  std::vector<std::string> names;
  EXPECT_TRUE(ListServices(Connect(), &names).ok());
  EXPECT_THAT(names,
              testing::UnorderedElementsAre(
                  "sfmamba.v1.VisionService", "sfmamba.v1.AdminService",
                  "inference.GRPCInferenceService", "grpc.health.v1.Health",
                  "grpc.reflection.v1alpha.ServerReflection"));
  Start({"--disable_reflection"});
  EXPECT_EQ(ListServices(Connect(), &names).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
  Start({TokenFlag(ClientText("camera", "one", "ADMIN"))});
  EXPECT_EQ(ListServices(Connect(), &names).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(SecurityTest, SeveralHeadersAreNoToken) {
  Start({TokenFlag(ClientText("camera", "one", "INFER"))});
  grpc::ClientContext context;
  AddToken("one", &context);
  AddToken("one", &context);
  v1::ClassifyResponse response;
  EXPECT_REFUSED(v1::VisionService::NewStub(Connect())->Classify(
                     &context, GreyRequest(), &response),
                 UNAUTHENTICATED, "TOKEN_INVALID");
}

// The test finds the methods by reflection, so that it also covers methods that
// are added later.
TEST_F(SecurityTest, EveryMethodNeedsAToken) {
  Start({TokenFlag(ClientText("camera", "one", "INFER"))});
  grpc::GenericStub stub(Connect());
  // These uses make the linker include the services' descriptions.
  ASSERT_NE(inference::ServerLiveRequest::descriptor(), nullptr);
  ASSERT_NE(v1::GetBatchProfileRequest::descriptor(), nullptr);
  int methods = 0;
  for (const char* name :
       {"sfmamba.v1.VisionService", "sfmamba.v1.AdminService",
        "inference.GRPCInferenceService"}) {
    const auto* service =
        google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(
            name);
    ASSERT_NE(service, nullptr) << name;
    for (int i = 0; i < service->method_count(); ++i) {
      const std::string method = service->method(i)->name();
      const bool probe = method == "ServerLive" || method == "ServerReady";
      grpc::ClientContext context;
      AddToken("", &context);
      grpc::CompletionQueue queue;
      const auto call =
          stub.PrepareUnaryCall(&context, absl::StrCat("/", name, "/", method),
                                grpc::ByteBuffer(nullptr, 0), &queue);
      call->StartCall();
      grpc::ByteBuffer answer;
      grpc::Status status;
      call->Finish(&answer, &status, this);
      void* tag = nullptr;
      bool ok = false;
      ASSERT_TRUE(queue.Next(&tag, &ok));
      EXPECT_EQ(status.error_code(), probe ? grpc::StatusCode::OK
                                           : grpc::StatusCode::UNAUTHENTICATED)
          << name << "." << method << ": " << status.error_message();
      ++methods;
    }
  }
  EXPECT_GT(methods, 25);
}

TEST_F(SecurityTest, RefusalTakesNoTime) {
  Start({TokenFlag(ClientText("camera", "one", "INFER"))});
  const auto channel = Connect();
  std::vector<absl::Duration> times;
  for (int i = 0; i < 201; ++i) {
    const absl::Time start = absl::Now();
    ASSERT_FALSE(Classify(channel, "wrong").ok());
    times.push_back(absl::Now() - start);
  }
  std::nth_element(times.begin(), times.begin() + 100, times.end());
  RecordProperty("round_trip_us", absl::ToInt64Microseconds(times[100]));
  // The server must count all refusals.
  EXPECT_EQ(Sum("sfmamba_request_duration_seconds_count",
                {R"(code="UNAUTHENTICATED")"}),
            201);
  const double seconds = Sum("sfmamba_request_duration_seconds_sum",
                             {R"(code="UNAUTHENTICATED")"});
  RecordProperty("server_us", static_cast<int>(seconds / 201 * 1e6));
  // The check of the token is a part of the round trip, so it takes less time.
  EXPECT_LT(times[100], absl::Milliseconds(50));
  EXPECT_LT(seconds / 201, 0.01);
}

TEST_F(SecurityTest, RevokedTokenEndsItsStream) {
  Start({TokenFlag(ClientText("camera", "one", "INFER") +
                   ClientText("other", "two", "INFER"))});
  const auto channel = Connect();
  const auto stub = v1::VisionService::NewStub(channel);
  grpc::ClientContext revoked_context, other_context;
  AddToken("one", &revoked_context);
  AddToken("two", &other_context);
  const auto revoked = stub->StreamPredict(&revoked_context);
  const auto other = stub->StreamPredict(&other_context);
  v1::StreamPredictRequest request;
  *request.mutable_classify() = GreyRequest();
  request.set_correlation_id("1");
  v1::StreamPredictResponse response;
  for (const auto* stream : {&revoked, &other}) {
    ASSERT_TRUE((*stream)->Write(request));
    ASSERT_TRUE((*stream)->Read(&response));
    EXPECT_TRUE(response.has_classify());
  }
  Write("tokens", ClientText("other", "two", "INFER"));
  EXPECT_FALSE(revoked->Read(&response));
  EXPECT_REFUSED(revoked->Finish(), UNAUTHENTICATED, "TOKEN_INVALID");
  ASSERT_TRUE(other->Write(request));
  ASSERT_TRUE(other->Read(&response));
  EXPECT_TRUE(response.has_classify());
  EXPECT_TRUE(other->WritesDone());
  EXPECT_FALSE(other->Read(&response));
  EXPECT_TRUE(other->Finish().ok());
}

TEST_F(SecurityTest, OverQuotaIsRefusedAndNobodyElse) {
  Start(
      {TokenFlag(ClientText("small", "one", "INFER", "quota { max_items: 2 }") +
                 ClientText("slow", "two", "INFER",
                            "quota { items_per_second: 0.01 burst: 3 }") +
                 ClientText("free", "three", "INFER"))});
  const auto channel = Connect();
  EXPECT_TRUE(Classify(channel, "one", 2).ok());
  EXPECT_REFUSED(Classify(channel, "one", 3), RESOURCE_EXHAUSTED,
                 "CLIENT_QUOTA");
  EXPECT_TRUE(Classify(channel, "two", 3).ok());
  const grpc::Status slow = Classify(channel, "two", 1);
  EXPECT_REFUSED(slow, RESOURCE_EXHAUSTED, "CLIENT_QUOTA");
  EXPECT_TRUE(absl::StrContains(slow.error_message(), "slow"));
  EXPECT_TRUE(Classify(channel, "three", 16).ok());
  EXPECT_EQ(Sum("sfmamba_requests_total", {R"(reason="CLIENT_QUOTA")"}), 2);
}

TEST_F(SecurityTest, BadTokenFileKeepsTheOldTokens) {
  Start({TokenFlag(ClientText("camera", "one", "INFER"))});
  Write("tokens", "client { junk");
  WaitForReloads("tokens", "kept_old", 1);
  EXPECT_TRUE(Classify(Connect(), "one").ok());
  EXPECT_REFUSED(Classify(Connect(), ""), UNAUTHENTICATED, "TOKEN_INVALID");
}

TEST_F(SecurityTest, BadFilesAtTheStartEndIt) {
  for (const std::string& flag :
       {TokenFlag("junk"), std::string("--token_file=/nowhere")}) {
    ServerProcess server({"--model_repository=" + WriteTinyModel(), flag});
    EXPECT_EQ(server.Wait(), 2) << server.output();
  }
}

}  // namespace
}  // namespace sfmamba
