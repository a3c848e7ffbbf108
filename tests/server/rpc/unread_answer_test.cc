// Tests a client that does not read its answer.

#include <memory>
#include <string>

#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "tests/server/picture.h"
#include "tests/server/vision_service_fixture.h"
#include "tests/testing/http.h"

namespace sfmamba::rpc {
namespace {

// Returns a request whose answer is a map with one byte per pixel. The answer
// exceeds gRPC's flow-control window.
v1::SegmentRequest RequestOfALargeAnswer() {
  v1::SegmentRequest request;
  request.add_images()->set_encoded(
      server::EncodePng(server::WithRed(1000, 600, {10, 10, 20, 20})));
  request.mutable_params()->set_encoding(v1::SegmentParams::RAW_INDEX);
  return request;
}
constexpr int kAnswerBytes = 1000 * 600;

// Makes a Segment call and never reads its answer. The constructor returns when
// the server has begun to send the answer. The metrics count the call a little
// earlier.
class UnreadCall {
 public:
  explicit UnreadCall(int port) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    stub_ = std::make_unique<grpc::GenericStub>(grpc::CreateCustomChannel(
        "127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials(),
        arguments));
    call_ = stub_->PrepareCall(&context_, "/sfmamba.v1.VisionService/Segment",
                               &queue_);
    call_->StartCall(this);
    Next();
    const grpc::Slice bytes(RequestOfALargeAnswer().SerializeAsString());
    call_->WriteLast(grpc::ByteBuffer(&bytes, 1), grpc::WriteOptions(), this);
    Next();
    call_->ReadInitialMetadata(this);
    Next();
  }
  ~UnreadCall() {
    context_.TryCancel();
    grpc::Status status;
    call_->Finish(&status, this);
    Next();
    queue_.Shutdown();
    Next();
  }

 private:
  void Next() {
    void* tag = nullptr;
    bool ok = false;
    queue_.Next(&tag, &ok);
  }

  std::unique_ptr<grpc::GenericStub> stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
};

class UnreadAnswerTest : public server::VisionServiceTest {
 protected:
  double Held(const std::string& what, double value) {
    return server_->WaitForSum("sfmamba_memory_held_bytes",
                               {"what=\"" + what + "\""}, value);
  }
};

TEST_F(UnreadAnswerTest, EachHasTheWholeTime) {
  Start("max_queue_delay {}", v1::ServerConfig(), true,
        model::VisionTask::kSegmentation);
  const auto in_flight = [this](double calls) {
    return server_->WaitForSum("sfmamba_in_flight_requests", {}, calls);
  };
  UnreadCall first(server_->server().port());
  server_->AdvanceClock(absl::Seconds(15));
  UnreadCall second(server_->server().port());
  EXPECT_EQ(in_flight(2), 2);
  server_->AdvanceClock(absl::Seconds(6));
  EXPECT_EQ(in_flight(1), 1);
  server_->AdvanceClock(absl::Seconds(15));
  EXPECT_EQ(in_flight(0), 0);
}

TEST_F(UnreadAnswerTest, CountsAsHeldUntilItsCallIsEnded) {
  Start("max_queue_delay {}", v1::ServerConfig(), true,
        model::VisionTask::kSegmentation);
  {
    UnreadCall call(server_->server().port());
    // The model's map and the request's message are freed by now.
    ASSERT_EQ(server_->WaitForSum("sfmamba_requests_total", {"code=\"OK\""}, 1),
              1);
    const double held = SumOf(Samples(server_->Exposition()),
                              "sfmamba_memory_held_bytes", {"what=\"answer\""});
    EXPECT_GE(held, kAnswerBytes);
    EXPECT_LE(held, kAnswerBytes + 1000);
    EXPECT_EQ(Held("message", 0), 0);
    EXPECT_EQ(Held("input", 0), 0);
    EXPECT_EQ(server_->WaitForSum("sfmamba_in_flight_requests", {}, 1), 1);

    server_->AdvanceClock(absl::Seconds(21));
    EXPECT_EQ(Held("answer", 0), 0);
    EXPECT_EQ(server_->WaitForSum("sfmamba_in_flight_requests", {}, 0), 0);
    EXPECT_NE(server_->Log().find("answers were not read"), std::string::npos);
  }
  v1::SegmentRequest request = RequestOfALargeAnswer();
  EXPECT_EQ(SegmentOne(request).raw().data().size(), kAnswerBytes);
  EXPECT_EQ(Held("answer", 0), 0);
}

}  // namespace
}  // namespace sfmamba::rpc
