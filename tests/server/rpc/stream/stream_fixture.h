#ifndef SFMAMBA_TESTS_SERVER_RPC_STREAM_STREAM_FIXTURE_H_
#define SFMAMBA_TESTS_SERVER_RPC_STREAM_STREAM_FIXTURE_H_

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "tests/server/vision_service_fixture.h"

namespace sfmamba::rpc {

using v1::StreamPredictRequest;
using v1::StreamPredictResponse;

inline StreamPredictRequest Config(int max_in_flight,
                                   bool preserve_order = false) {
  StreamPredictRequest message;
  message.mutable_config()->set_max_in_flight(max_in_flight);
  message.mutable_config()->set_preserve_order(preserve_order);
  return message;
}

inline StreamPredictRequest Grey(const std::string& id, int grey) {
  StreamPredictRequest message;
  message.set_correlation_id(id);
  *message.mutable_classify() = server::GreyRequest(grey);
  return message;
}

// Returns a request that the server refuses at once, because the model is
// unknown.
inline StreamPredictRequest Unknown(const std::string& id) {
  StreamPredictRequest message = Grey(id, 1);
  message.mutable_classify()->set_model("unknown");
  return message;
}

inline server::Ending EndingOf(const google::rpc::Status& error) {
  return server::EndingOf(
      grpc::Status(static_cast<grpc::StatusCode>(error.code()), error.message(),
                   error.SerializeAsString()));
}

// The client's side of a stream. If the test does not finish the stream, the
// destructor cancels it.
class Stream {
 public:
  explicit Stream(server::RunningServer* server) : Stream(server->stub()) {}
  explicit Stream(v1::VisionService::Stub& stub)
      : stream_(stub.StreamPredict(&context_)) {}
  ~Stream() {
    if (stream_ == nullptr) return;
    context_.TryCancel();
    (void)stream_->Finish();
  }

  bool Send(const StreamPredictRequest& message) {
    return stream_->Write(message);
  }
  void SendNoMore() { stream_->WritesDone(); }
  bool Read(StreamPredictResponse* message) { return stream_->Read(message); }
  // Returns the next message. The test fails if the stream has ended.
  StreamPredictResponse Next() {
    StreamPredictResponse message;
    EXPECT_TRUE(stream_->Read(&message)) << "the stream has ended";
    return message;
  }
  void Cancel() { context_.TryCancel(); }
  server::Ending Finish() {
    const grpc::Status status = stream_->Finish();
    stream_ = nullptr;
    return server::EndingOf(status, &context_);
  }
  // Expects that the stream ends without another message. Returns how it ended.
  server::Ending ExpectEnd() {
    StreamPredictResponse message;
    EXPECT_FALSE(Read(&message)) << message.ShortDebugString();
    return Finish();
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<
      grpc::ClientReaderWriter<StreamPredictRequest, StreamPredictResponse>>
      stream_;
};

class StreamTest : public server::VisionServiceTest {
 protected:
  // Waits until `value` requests are in flight. Returns the last number of
  // requests in flight.
  double InFlight(double value) {
    return server_->WaitForSum("sfmamba_in_flight_requests", {}, value);
  }
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_TESTS_SERVER_RPC_STREAM_STREAM_FIXTURE_H_
