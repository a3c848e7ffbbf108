#include "server/rpc/reflection/reflection_service.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "tests/server/security/token_texts.h"
#include "tests/testing/patience.h"

namespace sfmamba::rpc {
namespace {

using grpc::StatusCode;
using grpc::reflection::v1alpha::ServerReflection;
using grpc::reflection::v1alpha::ServerReflectionRequest;
using grpc::reflection::v1alpha::ServerReflectionResponse;
using security::ClientText;

// So long that an answer with it has more than 23 bytes: gRPC serializes
// shorter ones by other code.
constexpr char kService[] = "sfmamba.v1.VisionService";

class ReflectionServiceTest : public testing::Test {
 protected:
  using Stream = grpc::ClientReaderWriter<ServerReflectionRequest,
                                          ServerReflectionResponse>;
  // A call of a client.
  struct Call {
    grpc::ClientContext context;
    std::unique_ptr<Stream> stream;
  };

  ReflectionServiceTest()
      : gate_(security::Gate::Options()), service_(&gate_, {kService}) {
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    channel_ = grpc::CreateChannel(absl::StrCat("127.0.0.1:", port),
                                   grpc::InsecureChannelCredentials());
    stub_ = ServerReflection::NewStub(channel_);
  }

  void UseTokens(const std::string& text) {
    auto tokens = security::Tokens::Parse(text, security::Quota());
    ASSERT_TRUE(tokens.ok()) << tokens.status();
    gate_.Use(*std::move(tokens));
  }
  std::unique_ptr<Call> Begin(const std::string& token = "") {
    auto call = std::make_unique<Call>();
    call->context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience / 3));
    if (!token.empty()) {
      call->context.AddMetadata("authorization",
                                absl::StrCat("Bearer ", token));
    }
    call->stream = stub_->ServerReflectionInfo(&call->context);
    return call;
  }
  // Whether a list of the services is answered.
  static bool List(Call* call) {
    ServerReflectionRequest request;
    request.set_list_services("");
    ServerReflectionResponse response;
    return call->stream->Write(request) && call->stream->Read(&response) &&
           response.list_services_response().service_size() == 1 &&
           response.list_services_response().service(0).name() == kService;
  }
  static StatusCode EndOf(Call* call) {
    ServerReflectionResponse response;
    EXPECT_FALSE(call->stream->Read(&response));
    return call->stream->Finish().error_code();
  }

  const TimeLimit limit_{"the end of the test"};
  security::Gate gate_;
  ReflectionService service_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<ServerReflection::Stub> stub_;
};

TEST_F(ReflectionServiceTest, AnswersRequestsOneAfterAnother) {
  const auto call = Begin();
  EXPECT_TRUE(List(call.get()));
  EXPECT_TRUE(List(call.get()));
  call->stream->WritesDone();
  EXPECT_EQ(EndOf(call.get()), StatusCode::OK);
}

TEST_F(ReflectionServiceTest, WithTokensOnlyWhoMayReadIsAnswered) {
  UseTokens(ClientText("camera", "one", "INFER") +
            ClientText("reader", "two", "READ"));
  EXPECT_EQ(EndOf(Begin().get()), StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(EndOf(Begin("three").get()), StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(EndOf(Begin("one").get()), StatusCode::PERMISSION_DENIED);
  EXPECT_TRUE(List(Begin("two").get()));
}

TEST_F(ReflectionServiceTest, WhoMayNotReadAnyMoreGetsNoFurtherAnswer) {
  UseTokens(ClientText("reader", "two", "READ"));
  const auto call = Begin("two");
  ASSERT_TRUE(List(call.get()));
  UseTokens(ClientText("reader", "two", "INFER"));
  EXPECT_FALSE(List(call.get()));
  EXPECT_EQ(call->stream->Finish().error_code(), StatusCode::PERMISSION_DENIED);
}

TEST_F(ReflectionServiceTest, AMessageThatIsNoneEndsTheStream) {
  grpc::GenericStub stub(channel_);
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const auto next = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  const auto call = stub.PrepareCall(&context,
                                     "/grpc.reflection.v1alpha.ServerReflection"
                                     "/ServerReflectionInfo",
                                     &queue);
  call->StartCall(this);
  ASSERT_TRUE(next());
  const grpc::Slice junk("\xff\xff\xff", 3);
  call->Write(grpc::ByteBuffer(&junk, 1), this);
  ASSERT_TRUE(next());
  grpc::Status status;
  call->Finish(&status, this);
  ASSERT_TRUE(next());
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
}

TEST_F(ReflectionServiceTest, ALargeRequestIsNotSentBack) {
  const auto call = Begin();
  ServerReflectionRequest request;
  request.set_list_services("");
  request.set_host(std::string(ReflectionService::kMostRequestBytes, 'h'));
  EXPECT_TRUE(call->stream->Write(request));
  EXPECT_EQ(EndOf(call.get()), StatusCode::INVALID_ARGUMENT);
  // The largest that is read.
  while (request.ByteSizeLong() > ReflectionService::kMostRequestBytes) {
    request.mutable_host()->pop_back();
  }
  const auto largest = Begin();
  EXPECT_TRUE(largest->stream->Write(request));
  ServerReflectionResponse response;
  EXPECT_TRUE(largest->stream->Read(&response));
  EXPECT_EQ(response.list_services_response().service_size(), 1);
}

TEST_F(ReflectionServiceTest, TooManyStreamsAreRefused) {
  UseTokens(ClientText("hog", "one", "READ") +
            ClientText("other", "two", "READ"));
  std::vector<std::unique_ptr<Call>> calls;
  for (size_t i = 0; i < ReflectionService::kMostStreams; ++i) {
    const bool hog = i < ReflectionService::kMostOfClient;
    calls.push_back(Begin(hog ? "one" : "two"));
    ASSERT_TRUE(List(calls.back().get()));
    if (i + 1 != ReflectionService::kMostOfClient) continue;
    EXPECT_EQ(EndOf(Begin("one").get()), StatusCode::RESOURCE_EXHAUSTED);
  }
  const auto surplus = Begin("two");
  ServerReflectionResponse response;
  EXPECT_FALSE(surplus->stream->Read(&response));
  const grpc::Status refused = surplus->stream->Finish();
  EXPECT_EQ(refused.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(refused.error_message(),
            "at most 64 streams of reflection, 48 of one client, are served");
  // There is room again once a stream has ended.
  calls.back()->context.TryCancel();
  EXPECT_EQ(EndOf(calls.back().get()), StatusCode::CANCELLED);
  WaitUntil([this] { return List(Begin("two").get()); }, "a place");
}

TEST_F(ReflectionServiceTest, AStoppingServerEndsTheStreams) {
  const auto call = Begin();
  ASSERT_TRUE(List(call.get()));
  service_.EndStreams();
  EXPECT_EQ(EndOf(call.get()), StatusCode::UNAVAILABLE);
  EXPECT_EQ(EndOf(Begin().get()), StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace sfmamba::rpc
