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

// A message of a StreamPredict call. The message contains an inner request,
// such as a ClassifyRequest, which is not parsed.
struct StreamMessage {
  std::string correlation_id;
  v1::StreamPredictRequest::RequestCase kind =
      v1::StreamPredictRequest::REQUEST_NOT_SET;
  // The configuration, if `kind` is kConfig.
  v1::StreamConfig config;
  // The bytes of the inner request, if the message contains one.
  grpc::ByteBuffer request;
};

// Reads the StreamPredictRequest in `received` into `message`, which must be
// default-constructed. Does not copy the bytes of the inner request. `received`
// is empty afterwards. Returns INVALID_ARGUMENT with reason MALFORMED_MESSAGE
// in these cases:
// - The bytes are not a valid StreamPredictRequest.
// - The message has more than one request or configuration.
// - The correlation id or the configuration is too long.
absl::Status OpenStreamMessage(grpc::ByteBuffer* received,
                               StreamMessage* message);

// Reads the messages of a StreamPredict call. Used as a StreamCall::Take. The
// first message may set the maximum number of requests in flight. The first
// message may also ask for responses in request order. By default, each
// response is sent as soon as it is ready. A malformed message ends the stream.
class PredictStream {
 public:
  static constexpr int kMostInFlight = 512;
  static constexpr int kDefaultInFlight = 16;

  // Returns the options for a StreamCall. The options contain the notice that
  // the stream sends when the server starts to drain.
  static StreamCall::Options Options();

  // `environment` and `context` must outlive the stream.
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
