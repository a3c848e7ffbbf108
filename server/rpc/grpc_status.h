#ifndef SFMAMBA_SERVER_RPC_GRPC_STATUS_H_
#define SFMAMBA_SERVER_RPC_GRPC_STATUS_H_

#include <string>

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/status.h"
#include "server/errors/error.h"

namespace sfmamba::rpc {

using server::ToRpcStatus;

// Converts a status to a gRPC status. For an error, the trailer
// grpc-status-details-bin holds the result of ToRpcStatus().
grpc::Status ToGrpcStatus(const absl::Status& status);

// Returns the gRPC status with which a call ends. If `status` has a retry
// delay, also adds the trailer grpc-retry-pushback-ms. The value of the trailer
// is at least 1 (in milliseconds).
grpc::Status EndCall(const absl::Status& status,
                     grpc::ServerContextBase* context);

// Returns the header `name` of a call. Returns an empty string if the call has
// no such header or several.
std::string OnlyHeader(const grpc::ServerContextBase& context,
                       const char* name);

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_GRPC_STATUS_H_
