#ifndef SFMAMBA_SERVER_RPC_STREAM_STREAM_MESSAGE_H_
#define SFMAMBA_SERVER_RPC_STREAM_STREAM_MESSAGE_H_

#include <string>

#include "absl/status/status.h"
#include "grpcpp/support/byte_buffer.h"
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

// Takes the bytes of `received`, which is empty afterwards, and copies nothing
// of the request within. INVALID_ARGUMENT, MALFORMED_MESSAGE, if they are no
// StreamPredictRequest, if they have more than one request, or if the
// correlation id or the configuration is longer than can be right.
absl::Status OpenStreamMessage(grpc::ByteBuffer* received,
                               StreamMessage* message);

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_STREAM_STREAM_MESSAGE_H_
