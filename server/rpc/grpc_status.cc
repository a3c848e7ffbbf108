#include "server/rpc/grpc_status.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/errors/error.h"

namespace sfmamba::rpc {

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const google::rpc::Status proto = ToRpcStatus(status);
  return grpc::Status(static_cast<grpc::StatusCode>(proto.code()),
                      proto.message(), proto.SerializeAsString());
}

grpc::Status EndCall(const absl::Status& status,
                     grpc::ServerContextBase* context) {
  const absl::Duration delay = server::GetErrorDetail(status).retry_after;
  if (delay != absl::InfiniteDuration()) {
    // The trailer grpc-retry-pushback-ms tells the client how long to wait
    // before it retries the call. The delay is at least 1 ms, because some gRPC
    // clients (such as gRPC 1.85) never retry a call if the delay is 0.
    const absl::Duration unit = absl::Milliseconds(1);
    const absl::Duration rounded = absl::Ceil(std::max(delay, unit), unit);
    context->AddTrailingMetadata(
        "grpc-retry-pushback-ms",
        absl::StrCat(absl::ToInt64Milliseconds(rounded)));
  }
  return ToGrpcStatus(status);
}

std::string OnlyHeader(const grpc::ServerContextBase& context,
                       const char* name) {
  const auto& metadata = context.client_metadata();
  if (metadata.count(name) != 1) return "";
  const auto found = metadata.find(name);
  return std::string(found->second.data(), found->second.size());
}

}  // namespace sfmamba::rpc
