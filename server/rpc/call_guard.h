#ifndef SFMAMBA_SERVER_RPC_CALL_GUARD_H_
#define SFMAMBA_SERVER_RPC_CALL_GUARD_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/security/caller.h"
#include "server/security/gate.h"

namespace sfmamba::rpc {

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

// Who opens a stream of requests to infer, if they may: see CheckCaller().
// `gate` outlives what is returned.
absl::StatusOr<StreamRights> CheckStream(
    const security::Gate* gate, const grpc::ServerContextBase& context);

// Ends a stream before it has begun. Deletes itself.
grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* RefuseStream(
    const grpc::Status& status);

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_CALL_GUARD_H_
