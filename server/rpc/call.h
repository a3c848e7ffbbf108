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

// What calls whose messages come and go as bytes have in common.

namespace sfmamba::rpc {

using prediction::CallInfo;

// Time left until the call's deadline; InfiniteDuration() if it has none. It is
// told by gRPC's clock, which is never set. Context's deadline() is of the wall
// clock: once that is set, absl::Now(), which asks it every two seconds only,
// is for a while of another time.
absl::Duration TimeLeft(const grpc::ServerContextBase& context);

CallInfo InfoOf(const grpc::CallbackServerContext& context,
                security::Caller caller);

// The client of a call by its address, the peer's with a null gate.
std::string ClientOf(const security::Gate* gate,
                     const grpc::ServerContextBase& context);

// The header `authorization` of a call; empty if it has none, or several: which
// one an intermediary has checked is not known.
std::string AuthorizationOf(const grpc::ServerContextBase& context);

// Who makes a call, if they may: see Gate::Check(). Handlers ask before they
// read anything of the message. With a null gate everybody may do everything.
absl::StatusOr<security::Caller> CheckCaller(
    const security::Gate* gate, const grpc::ServerContextBase& context,
    security::Scope scope);

// Who makes a call that lasts.
struct StreamRights {
  security::Caller caller;
  // Whether the caller may still do it: the tokens may have changed.
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

// INVALID_ARGUMENT, MALFORMED_MESSAGE, if a request without pictures has more
// bytes than any has.
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

// Writes a message as the bytes to be sent, in place of what `bytes` has.
template <typename Message>
void Serialize(const Message& message, grpc::ByteBuffer* bytes) {
  bytes->Clear();  // gRPC aborts the process if there are some.
  bool owned;      // Always, by `bytes`.
  grpc::SerializationTraits<Message>::Serialize(message, bytes, &owned);
}

// Makes `bytes` the message of these pieces, which are not copied.
void SetPieces(std::vector<std::string> pieces, grpc::ByteBuffer* bytes);

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_CALL_H_
