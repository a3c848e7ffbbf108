#ifndef SFMAMBA_SERVER_RPC_GRPC_STATUS_H_
#define SFMAMBA_SERVER_RPC_GRPC_STATUS_H_

#include <string>

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/status.h"
#include "server/errors/error.h"

namespace sfmamba::rpc {

using server::ToRpcStatus;

// The status of a call, with ToRpcStatus() in grpc-status-details-bin.
grpc::Status ToGrpcStatus(const absl::Status& status);

// The status of a call that ends now, like ToGrpcStatus(): a retry hint of
// `status` also becomes the trailer grpc-retry-pushback-ms, of at least 1.
grpc::Status EndCall(const absl::Status& status,
                     grpc::ServerContextBase* context);

// The header `name` of a call; empty if it has none or several.
std::string OnlyHeader(const grpc::ServerContextBase& context,
                       const char* name);

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_GRPC_STATUS_H_
