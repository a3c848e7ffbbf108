#ifndef SFMAMBA_SERVER_KSERVE_INFER_STREAM_H_
#define SFMAMBA_SERVER_KSERVE_INFER_STREAM_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/kserve/shared_memory.h"
#include "server/prediction/transport_environment.h"
#include "server/rpc/call.h"
#include "server/rpc/send_watch.h"
#include "server/rpc/stream/stream_call.h"

namespace sfmamba::kserve {

// A ModelStreamInfer call. Answers go as they are ready, each with its
// request's id, but those to requests without an id go in the order of their
// requests. An error is the answer to one request, a malformed one too; with
// the metadata `triton_grpc_error: true` the first error ends the stream
// instead, and what is in flight then is cancelled.
class InferStream final : public rpc::StreamCall {
 public:
  // Further requests wait on their way.
  static constexpr int kMaxInFlight = 64;

  // StreamCall's constructor, and Inference's `memory`.
  InferStream(const prediction::TransportEnvironment& environment,
              const SharedMemory* memory, grpc::CallbackServerContext* context,
              rpc::SendWatch* sends, rpc::StreamRights rights,
              std::function<absl::Status()> serving);

 private:
  absl::StatusOr<std::unique_ptr<rpc::StreamItem>> Take(
      grpc::ByteBuffer* received) override;

  const prediction::TransportEnvironment& env_;
  const SharedMemory* const memory_;
  const grpc::CallbackServerContext& context_;
  const bool errors_end_it_;
};

}  // namespace sfmamba::kserve

#endif  // SFMAMBA_SERVER_KSERVE_INFER_STREAM_H_
