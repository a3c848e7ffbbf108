#ifndef SFMAMBA_SERVER_RPC_STREAM_PREDICT_STREAM_H_
#define SFMAMBA_SERVER_RPC_STREAM_PREDICT_STREAM_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/prediction/transport_environment.h"
#include "server/rpc/stream/stream_call.h"
#include "server/security/caller.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::rpc {

// A message of a StreamPredict call, opened as far as the request within.
struct StreamMessage {
  std::string correlation_id;
  v1::StreamPredictRequest::RequestCase kind =
      v1::StreamPredictRequest::REQUEST_NOT_SET;
  v1::StreamConfig config;   // If it is kConfig.
  grpc::ByteBuffer request;  // Else the request's bytes, as they were received.
};

// Moves the bytes of `received` into `message`, a new one, and copies nothing
// of the request within. INVALID_ARGUMENT, MALFORMED_MESSAGE, if the bytes are
// no StreamPredictRequest, if they have more than one request, or if the
// correlation id or the configuration is too long to be valid.
absl::Status OpenStreamMessage(grpc::ByteBuffer* received,
                               StreamMessage* message);

// Takes the messages of a StreamPredict call: a StreamCall::Take. The first
// message may set how many requests may be in flight and whether their order is
// kept. By default answers go as they are ready. A malformed message ends the
// stream.
class PredictStream {
 public:
  static constexpr int kMostInFlight = 512;
  static constexpr int kDefaultInFlight = 16;

  // Returns the options of the StreamCall. A draining server says so in a
  // notice.
  static StreamCall::Options Options();

  // Both outlive the stream.
  PredictStream(const prediction::TransportEnvironment& environment,
                const grpc::CallbackServerContext& context)
      : env_(environment), context_(context) {}

  absl::StatusOr<std::unique_ptr<StreamItem>> operator()(
      StreamCall& stream, grpc::ByteBuffer* received);

 private:
  absl::Status Configure(const v1::StreamConfig& config, StreamCall* stream);

  const prediction::TransportEnvironment& env_;
  const grpc::CallbackServerContext& context_;
  bool any_message_ = false;
  bool preserve_order_ = false;
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_STREAM_PREDICT_STREAM_H_
