#ifndef SFMAMBA_SERVER_RPC_CALL_H_
#define SFMAMBA_SERVER_RPC_CALL_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/call/wire/wire_cursor.h"
#include "server/observability/metrics.h"
#include "server/prediction/prediction_request.h"
#include "server/security/caller.h"
#include "server/security/gate.h"

// Helper functions for gRPC calls whose messages arrive as bytes.

namespace sfmamba::rpc {

using prediction::CallInfo;

// Returns the time until the call's deadline. Returns InfiniteDuration() if the
// call has no deadline.
//
// Uses gRPC's monotonic clock for both the deadline and the current time. The
// difference between the context's deadline() and absl::Now() is not used,
// because both are times of the wall clock. After a change of the wall clock,
// absl::Now() can be wrong for up to two seconds.
absl::Duration TimeLeft(const grpc::ServerContextBase& context);

CallInfo InfoOf(const grpc::CallbackServerContext& context,
                security::Caller caller);

// Returns the address that identifies the client of a call (see
// Gate::ClientOf()). If `gate` is null, returns the address of the peer.
std::string ClientOf(const security::Gate* gate,
                     const grpc::ServerContextBase& context);

// Returns the value of the header `authorization` of a call. If the call has no
// such header or several, returns an empty string. Several headers are not
// accepted, because a proxy in front of the server may have checked only one of
// them. The server would not know which one.
std::string AuthorizationOf(const grpc::ServerContextBase& context);

// Checks that the caller of a call has `scope`. Returns the caller, or an error
// of Gate::Check(). Must be called before any part of the message is read. If
// `gate` is null, every caller has every scope.
absl::StatusOr<security::Caller> CheckCaller(
    const security::Gate* gate, const grpc::ServerContextBase& context,
    security::Scope scope);

// The caller of a stream and a function that checks the caller's rights again.
struct StreamRights {
  security::Caller caller;
  // Returns OK if the caller still has the required scope. The answer may
  // change, because the server's tokens can change while the stream is open.
  std::function<absl::Status()> allowed = [] { return absl::OkStatus(); };
};

// Checks the caller of a stream with CheckCaller(). Returns the caller and a
// function that repeats the check. `gate` must outlive the returned object.
absl::StatusOr<StreamRights> CheckStream(const security::Gate* gate,
                                         const grpc::ServerContextBase& context,
                                         security::Scope scope);

// A reactor that rejects a stream. It finishes the stream with the error
// `status` and neither reads nor sends messages. It deletes itself when gRPC
// calls OnDone(). `Reactor` is gRPC's reactor type of the stream.
template <typename Reactor>
class Refused final : public Reactor {
 public:
  explicit Refused(const grpc::Status& status) { this->Finish(status); }
  void OnDone() override { delete this; }
};

using StreamReactor =
    grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

// Checks the size of a request that contains no pictures. Returns
// INVALID_ARGUMENT with reason MALFORMED_MESSAGE if the request is larger than
// any valid request.
absl::Status CheckPlainRequest(const grpc::ByteBuffer& bytes);

// Parses a request without pictures. Returns INVALID_ARGUMENT with reason
// MALFORMED_MESSAGE if the bytes are not valid.
template <typename Message>
absl::Status Parse(const grpc::ByteBuffer& bytes, Message* message) {
  const absl::Status status = CheckPlainRequest(bytes);
  if (!status.ok() || bytes.Length() == 0) return status;
  // Deserialize() empties this copy instead of `bytes`.
  grpc::ByteBuffer share = bytes;
  return grpc::SerializationTraits<Message>::Deserialize(&share, message).ok()
             ? absl::OkStatus()
             : call::NotParsed();
}

// Replaces the contents of `bytes` with the serialized message.
template <typename Message>
void Serialize(const Message& message, grpc::ByteBuffer* bytes) {
  // gRPC aborts the process if `bytes` is not empty.
  bytes->Clear();
  // Serialize() requires this argument, but its value is not used.
  bool owned;
  grpc::SerializationTraits<Message>::Serialize(message, bytes, &owned);
}

// Replaces the contents of `bytes` with a message that consists of `pieces`.
// The pieces are not copied.
void SetPieces(std::vector<std::string> pieces, grpc::ByteBuffer* bytes);

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_CALL_H_
