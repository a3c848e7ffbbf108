#ifndef SFMAMBA_SERVER_RPC_CALL_H_
#define SFMAMBA_SERVER_RPC_CALL_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/observability/metrics.h"
#include "server/prediction/prediction_request.h"
#include "server/rpc/wire/received_request.h"
#include "server/security/caller.h"

// What calls whose messages come and go as bytes have in common.

namespace sfmamba::rpc {

using prediction::CallInfo;

// What is left until the call's deadline; InfiniteDuration() if it has none. It
// is told by gRPC's clock, which is never set. Context's deadline() is of the
// wall clock: once that is set, absl::Now(), which asks it every two seconds
// only, is for a while of another time.
absl::Duration TimeLeft(const grpc::ServerContextBase& context);

CallInfo InfoOf(const grpc::CallbackServerContext& context,
                security::Caller caller);

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
             : NotParsed();
}

// Writes a message as the bytes to be sent.
template <typename Message>
void Serialize(const Message& message, grpc::ByteBuffer* bytes) {
  bool owned;  // Always, by `bytes`.
  grpc::SerializationTraits<Message>::Serialize(message, bytes, &owned);
}

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_CALL_H_
