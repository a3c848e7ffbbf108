#ifndef SFMAMBA_CLIENT_RPC_RPC_STATUS_H_
#define SFMAMBA_CLIENT_RPC_RPC_STATUS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "grpcpp/support/status.h"

namespace sfmamba::client {

// The server's details about an error, besides code and message. All are empty
// if the network or gRPC itself raised the error.
struct RpcErrorDetails {
  std::string reason;  // ErrorInfo.reason, such as "QUEUE_FULL".
  // The metadata of ErrorInfo.
  std::map<std::string, std::string> metadata;
  std::vector<std::string> fields;  // BadRequest paths: "images[2].encoded".
  // The delay in RetryInfo.
  absl::optional<absl::Duration> retry_delay;
};

// Converts a status of gRPC. The messages in its grpc-status-details-bin become
// payloads under their type URLs. Details that cannot be parsed are dropped.
absl::Status FromGrpcStatus(const grpc::Status& status);

// Reads the payloads that FromGrpcStatus() attached.
RpcErrorDetails GetRpcErrorDetails(const absl::Status& status);

// Returns true if the server is still loading the requested model.
bool IsLoading(const RpcErrorDetails& details);

// Returns true if a later attempt of the request may succeed. This is so while
// the server drains, loads the model or cannot be reached. A model that has
// failed to load never succeeds later. Also returns true for CANCELLED without
// a reason, because a stopping server ends its unfinished requests with this
// error. A request that the caller itself has cancelled ends with the same
// error, so the caller must not pass such an error.
bool MayPass(const absl::Status& error);

// Returns the request's ID in the server's log and traces, or "" if the server
// did not send it.
std::string TraceIdOf(const RpcErrorDetails& details);

// Returns one human-readable line, for example "NOT_FOUND (MODEL_NOT_FOUND):
// model 'x' ...; trace 4b...". It names the first invalid field.
std::string DescribeRpcError(const absl::Status& status);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_RPC_RPC_STATUS_H_
