// Tests that requests get the limits of the configuration.

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "inference/grpc_service.grpc.pb.h"
#include "tests/server/http/raw_client.h"
#include "tests/server/picture.h"
#include "tests/server/vision_service_fixture.h"
#include "tests/testing/patience.h"

namespace sfmamba::server {
namespace {

using grpc::StatusCode;

class ServerLimitsTest : public VisionServiceTest {
 protected:
  // Sends a picture of this size. Returns the reason in the error, or an empty
  // string if the server accepts the picture.
  std::string ReasonOf(int width, int height) {
    v1::ClassifyRequest request;
    request.add_images()->set_encoded(EncodePng(Gradient(width, height)));
    return Classify(request).reason;
  }
};

TEST_F(ServerLimitsTest, APictureHasAsManyPixelsAsAllowed) {
  v1::ServerConfig config;
  config.set_max_image_pixels(80 * 70);
  config.set_max_image_side(90);
  Start("", config);
  EXPECT_EQ(ReasonOf(80, 70), "");
  EXPECT_EQ(ReasonOf(80, 71), "IMAGE_TOO_LARGE");
  EXPECT_EQ(ReasonOf(90, 60), "");
  EXPECT_EQ(ReasonOf(91, 60), "IMAGE_TOO_LARGE");
}

TEST_F(ServerLimitsTest, APictureHasAsManyBytesAsAllowed) {
  v1::ServerConfig config;
  config.set_max_image_bytes(EncodePng(Gradient(80, 70)).size());
  Start("", config);
  EXPECT_EQ(ReasonOf(80, 70), "");
  EXPECT_EQ(ReasonOf(200, 200), "IMAGE_TOO_LARGE");
}

TEST_F(ServerLimitsTest, APictureTakesNoMoreMemoryThanThereIsForDecoding) {
  v1::ServerConfig config;
  config.set_decode_memory_budget_bytes(1 << 20);
  Start("", config);
  EXPECT_EQ(ReasonOf(80, 70), "");
  EXPECT_EQ(ReasonOf(2000, 2000), "IMAGE_TOO_LARGE");
}

TEST_F(ServerLimitsTest, ARequestHasAsManyImagesAsAllowed) {
  v1::ServerConfig config;
  config.set_max_images_per_request(2);
  Start("", config);
  v1::ClassifyRequest request = GreyRequest(1);
  *request.add_images() = GreyImage(2);
  EXPECT_EQ(Classify(request).code, StatusCode::OK);
  *request.add_images() = GreyImage(3);
  EXPECT_EQ(Classify(request).reason, "TOO_MANY_IMAGES");
}

TEST_F(ServerLimitsTest, WhoSetsNoDeadlineHasTheDefault) {
  v1::ServerConfig config;
  config.mutable_default_deadline()->set_nanos(20'000'000);
  Start("max_batch_size: 1", config);
  server_->gate().Close();
  std::thread patient([this] {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + kTestPatience));
    v1::ClassifyResponse response;
    EXPECT_TRUE(
        server_->stub().Classify(&context, GreyRequest(1), &response).ok());
  });
  server_->gate().WaitForBatch();
  EXPECT_EQ(Classify(GreyRequest(2)).code, StatusCode::DEADLINE_EXCEEDED);
  server_->gate().Open();
  Join(patient, "the end of a call with a deadline");
}

TEST_F(ServerLimitsTest, NoDeadlineIsFurtherAwayThanAllowed) {
  v1::ServerConfig config;
  config.mutable_max_deadline()->set_nanos(20'000'000);
  Start("max_batch_size: 1", config);
  server_->gate().Close();
  Call first(*server_, GreyRequest(1)), second(*server_, GreyRequest(2));
  // One of the requests may already be in the batch. It then ends together with
  // the batch.
  WaitUntil(
      [this] { return server_->Sum("sfmamba_deadline_misses_total", {}) >= 1; },
      "the other to expire");
  server_->gate().Open();
  EXPECT_EQ(first.Wait().code, StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(second.Wait().code, StatusCode::DEADLINE_EXCEEDED);
}

// HTTP bodies may occupy an eighth of the memory budget of 128 MiB, which is
// 16 MiB. A client may occupy half of this, which is 8 MiB. Each body here has
// 4 MiB and all come from one client, so the third body is refused.
TEST_F(ServerLimitsTest, ClientsHoldAsManyBytesOverHttpAsAllowed) {
  v1::ServerConfig config;
  config.set_http_port(0);
  config.set_memory_budget_bytes(128 << 20);
  config.set_max_message_bytes(4 << 20);
  config.set_client_share(0.5);
  Start("", config);
  std::vector<std::unique_ptr<http::RawClient>> clients;
  const auto announce = [&] {
    clients.push_back(
        std::make_unique<http::RawClient>(server_->server().http_port()));
    clients.back()->Send(absl::StrCat(
        "POST /v1/models/fake:classify HTTP/1.1\r\nContent-Type: image/png\r\n"
        "Expect: 100-continue\r\nContent-Length: ",
        4 << 20, "\r\n\r\n"));
    return clients.back()->ReadAnswer();
  };
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(absl::StartsWith(announce(), "HTTP/1.1 100")) << i;
  }
  EXPECT_TRUE(absl::StartsWith(announce(), "HTTP/1.1 503"));
}

// The answers do not fit into the buffers of a socket. So the server cannot
// send them completely while the client reads nothing.
class SendTimeoutTest : public ServerLimitsTest {
 protected:
  void Start(v1::ServerConfig config) {
    config.set_http_port(0);
    VisionServiceTest::Start("max_queue_delay {}", config, /*load=*/true,
                             model::VisionTask::kSegmentation);
  }
  void ExpectAnswered() {
    ASSERT_EQ(server_->WaitForSum("sfmamba_requests_total", {"code=\"OK\""}, 1),
              1);
  }

  const std::string picture_ = EncodePng(WithRed(4000, 1000, {10, 10, 20, 20}));
};

// Makes a KServe call and reads nothing of its answer.
class UnreadCall {
 public:
  UnreadCall(int port, const std::string& picture) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    stub_ = inference::GRPCInferenceService::NewStub(grpc::CreateCustomChannel(
        absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials(),
        arguments));
    inference::ModelInferRequest request;
    request.set_model_name("fake");
    auto* input = request.add_inputs();
    input->set_name("image");
    input->set_datatype("BYTES");
    input->add_shape(1);
    input->mutable_contents()->add_bytes_contents(picture);
    call_ = stub_->PrepareAsyncModelInfer(&context_, request, &queue_);
    call_->StartCall();
    call_->ReadInitialMetadata(this);  // This sends the request.
  }
  ~UnreadCall() {
    context_.TryCancel();
    inference::ModelInferResponse response;
    grpc::Status status;
    call_->Finish(&response, &status, this);
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }

 private:
  std::unique_ptr<inference::GRPCInferenceService::Stub> stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<
      grpc::ClientAsyncResponseReader<inference::ModelInferResponse>>
      call_;
};

TEST_F(SendTimeoutTest, EndsACallOfKserve) {
  v1::ServerConfig config;
  config.mutable_send_timeout()->set_seconds(600);
  Start(config);
  const UnreadCall call(server_->server().port(), picture_);
  ExpectAnswered();
  const auto look_twice = [this] {
    const int looks = server_->memory_releases();
    WaitUntil([&] { return server_->memory_releases() >= looks + 2; },
              "the housekeeping looked");
  };
  server_->AdvanceClock(absl::Seconds(300));
  look_twice();
  EXPECT_EQ(server_->Sum("sfmamba_in_flight_requests", {}), 1);
  // The server may begin to send only after the clock was advanced, and the
  // timeout then begins later. So the clock is advanced repeatedly.
  WaitUntil(
      [this] {
        server_->AdvanceClock(absl::Seconds(600));
        return server_->Sum("sfmamba_in_flight_requests", {}) == 0;
      },
      "the call's end");
}

TEST_F(SendTimeoutTest, EndsAConnectionOfHttp) {
  v1::ServerConfig config;
  config.mutable_send_timeout()->set_nanos(1'000'000);
  Start(config);
  http::RawClient unread(server_->server().http_port(), 4096);
  unread.Send(absl::StrCat(
      "POST /v1/models/fake:segment?encoding=RAW_INDEX HTTP/1.1\r\n"
      "Content-Type: image/png\r\nContent-Length: ",
      picture_.size(), "\r\n\r\n", picture_));
  ExpectAnswered();
  // The default send_timeout is 20 s. The connection would then last longer
  // than this wait.
  WaitUntil([&unread] { return !unread.Send("x"); }, "the connection's end",
            absl::Seconds(15));
}

}  // namespace
}  // namespace sfmamba::server
