#ifndef SFMAMBA_SERVER_RPC_STREAM_INFER_STREAM_H_
#define SFMAMBA_SERVER_RPC_STREAM_INFER_STREAM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/prediction/transport_environment.h"
#include "server/rpc/stream/stream_call.h"

namespace sfmamba::rpc {

// Takes the messages of a ModelStreamInfer call: a StreamCall::Take. Answers go
// as they are ready, each with its request's id. The answers to requests
// without an id go in the order of their requests. An error is the answer to
// one request, even if the request is malformed. With the metadata
// `triton_grpc_error: true` the first error ends the stream instead, and
// cancels the requests in flight.
class InferStream {
 public:
  // Most requests of a stream in flight. Further ones are not read yet.
  static constexpr int kMaxInFlight = 64;

  // Returns the options of the StreamCall.
  static StreamCall::Options Options();

  // Both outlive the stream.
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
