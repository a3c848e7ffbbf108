#ifndef SFMAMBA_SERVER_BASE_GRPC_STATUS_H_
#define SFMAMBA_SERVER_BASE_GRPC_STATUS_H_

#include "absl/status/status.h"
#include "google/rpc/status.pb.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/status.h"

namespace sfmamba::server {

// With ErrorInfo always (reason: the code's name where MakeError gave none),
// and BadRequest and RetryInfo where they apply.
google::rpc::Status ToRpcStatus(const absl::Status& status);

// The same as the call's status, its details in grpc-status-details-bin.
grpc::Status ToGrpcStatus(const absl::Status& status);

// Adds the trailer grpc-retry-pushback-ms if `status` carries a retry hint.
void AddRetryPushback(const absl::Status& status,
                      grpc::ServerContextBase* context);

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_BASE_GRPC_STATUS_H_
