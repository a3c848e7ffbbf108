#ifndef SFMAMBA_SERVER_RPC_GRPC_STATUS_H_
#define SFMAMBA_SERVER_RPC_GRPC_STATUS_H_

#include <string>

#include "absl/status/status.h"
#include "google/rpc/status.pb.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/status.h"

namespace sfmamba::rpc {

// With ErrorInfo always (reason: the code's name where the status has none),
// and BadRequest and RetryInfo where they apply.
google::rpc::Status ToRpcStatus(const absl::Status& status);

// The status of a call, with ToRpcStatus() in grpc-status-details-bin.
grpc::Status ToGrpcStatus(const absl::Status& status);

// The status of a call that ends now, like ToGrpcStatus(): a retry hint of
// `status` also becomes the trailer grpc-retry-pushback-ms.
grpc::Status EndCall(const absl::Status& status,
                     grpc::ServerContextBase* context);

// The header `name` of a call; empty if it has none or several.
std::string OnlyHeader(const grpc::ServerContextBase& context,
                       const char* name);

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_GRPC_STATUS_H_
