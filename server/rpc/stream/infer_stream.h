#ifndef SFMAMBA_SERVER_RPC_STREAM_INFER_STREAM_H_
#define SFMAMBA_SERVER_RPC_STREAM_INFER_STREAM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/prediction/transport_environment.h"
#include "server/rpc/stream/stream_call.h"

namespace sfmamba::rpc {

// Reads the messages of a ModelStreamInfer call. Used as a StreamCall::Take. If
// a request has an id, its response contains the same id and is sent as soon as
// the response is ready. The responses to requests without an id are sent in
// request order. An error is sent as the response to its request, even if the
// request is malformed. If the metadata contains `triton_grpc_error: true`, the
// first error ends the stream and cancels all requests in flight.
class InferStream {
 public:
  // The maximum number of requests in flight per stream. If this many requests
  // are in flight, the server stops reading.
  static constexpr int kMaxInFlight = 64;

  static StreamCall::Options Options();

  // `environment` and `context` must outlive the stream.
  InferStream(const prediction::TransportEnvironment& environment,
              const grpc::CallbackServerContext& context);

  absl::StatusOr<std::unique_ptr<StreamItem>> operator()(
      StreamCall& stream, grpc::ByteBuffer* received);

 private:
  const prediction::TransportEnvironment& env_;
  const grpc::CallbackServerContext& context_;
  const bool errors_end_it_;
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_STREAM_INFER_STREAM_H_
