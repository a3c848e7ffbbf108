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

// What the server says of an error besides code and message. All is empty for
// an error that the network or gRPC itself raised.
struct RpcErrorDetails {
  std::string reason;  // ErrorInfo.reason, such as "QUEUE_FULL".
  std::map<std::string, std::string> metadata;  // ErrorInfo.metadata.
  std::vector<std::string> fields;  // BadRequest paths: "images[2].encoded".
  absl::optional<absl::Duration> retry_delay;  // RetryInfo.
};

// Code and message of `status`; the messages of its grpc-status-details-bin
// become payloads under their type URLs. Details that cannot be parsed are left
// out.
absl::Status FromGrpcStatus(const grpc::Status& status);

// Reads the payloads that FromGrpcStatus attached.
RpcErrorDetails GetRpcErrorDetails(const absl::Status& status);

// Whether the model that was asked is being loaded.
bool IsLoading(const RpcErrorDetails& details);

// Whether the same request may be answered later, for a caller that does not
// cancel: the server drains, loads the model or cannot be reached. A model that
// has failed to load stays so.
bool MayPass(const absl::Status& error);

// What the server's log and its traces call the request; empty if it does not
// say.
std::string TraceIdOf(const RpcErrorDetails& details);

// One line for people: "NOT_FOUND (MODEL_NOT_FOUND): model 'x' ...; trace
// 4b...". It names the first field at fault.
std::string DescribeRpcError(const absl::Status& status);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_RPC_RPC_STATUS_H_
