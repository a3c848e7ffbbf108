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

// Helpers of calls whose messages are bytes.

namespace sfmamba::rpc {

using prediction::CallInfo;

// Returns the time until the call's deadline; InfiniteDuration() if it has
// none. It is measured by gRPC's clock, which nobody sets. The context's
// deadline() is a time of the wall clock. When somebody sets that clock,
// absl::Now() differs from it for up to two seconds.
absl::Duration TimeLeft(const grpc::ServerContextBase& context);

CallInfo InfoOf(const grpc::CallbackServerContext& context,
                security::Caller caller);

// Returns the client of a call by its address. With a null gate, the peer's.
std::string ClientOf(const security::Gate* gate,
                     const grpc::ServerContextBase& context);

// Returns the header `authorization` of a call. Empty if the call has none, or
// several, because an intermediary may have checked another one.
std::string AuthorizationOf(const grpc::ServerContextBase& context);

// Returns who makes a call, if the caller may make it: see Gate::Check().
// Called before anything of the message is read. With a null gate everybody may
// do everything.
absl::StatusOr<security::Caller> CheckCaller(
    const security::Gate* gate, const grpc::ServerContextBase& context,
    security::Scope scope);

// The rights of a stream's caller.
struct StreamRights {
  security::Caller caller;
  // Whether the caller still has them. The tokens may have changed.
  std::function<absl::Status()> allowed = [] { return absl::OkStatus(); };
};

// Returns who opens a stream if the caller has `scope`: see CheckCaller().
// `gate` outlives what is returned.
absl::StatusOr<StreamRights> CheckStream(const security::Gate* gate,
                                         const grpc::ServerContextBase& context,
                                         security::Scope scope);

// Ends a stream of gRPC's type `Reactor` before it has begun. Deletes itself.
template <typename Reactor>
class Refused final : public Reactor {
 public:
  explicit Refused(const grpc::Status& status) { this->Finish(status); }
  void OnDone() override { delete this; }
};

using StreamReactor =
    grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

// Returns INVALID_ARGUMENT, MALFORMED_MESSAGE, if a request without pictures
// has more bytes than any valid one.
absl::Status CheckPlainRequest(const grpc::ByteBuffer& bytes);

// Parses a request without pictures. INVALID_ARGUMENT, MALFORMED_MESSAGE.
template <typename Message>
absl::Status Parse(const grpc::ByteBuffer& bytes, Message* message) {
  const absl::Status status = CheckPlainRequest(bytes);
  if (!status.ok() || bytes.Length() == 0) return status;
  grpc::ByteBuffer share = bytes;  // Emptied by the call.
  return grpc::SerializationTraits<Message>::Deserialize(&share, message).ok()
             ? absl::OkStatus()
             : call::NotParsed();
}

// Replaces `bytes` by the bytes of a message.
template <typename Message>
void Serialize(const Message& message, grpc::ByteBuffer* bytes) {
  bytes->Clear();  // gRPC aborts the process if there are some.
  bool owned;      // Always, by `bytes`.
  grpc::SerializationTraits<Message>::Serialize(message, bytes, &owned);
}

// Replaces `bytes` by a message in these pieces, which are not copied.
void SetPieces(std::vector<std::string> pieces, grpc::ByteBuffer* bytes);

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_CALL_H_
