#include "client/rpc/rpc_status.h"

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/proto_duration.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace sfmamba::client {
namespace {

// Returns the URL under which google.protobuf.Any stores a message of type
// `Detail`.
template <typename Detail>
std::string TypeUrl() {
  return absl::StrCat("type.googleapis.com/",
                      Detail::descriptor()->full_name());
}

// Returns false if `status` has no valid `detail`.
template <typename Detail>
bool GetDetail(const absl::Status& status, Detail* detail) {
  const absl::optional<absl::Cord> payload =
      status.GetPayload(TypeUrl<Detail>());
  return payload.has_value() && detail->ParseFromString(std::string(*payload));
}

}  // namespace

absl::Status FromGrpcStatus(const grpc::Status& status) {
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()),
                      status.error_message());
  google::rpc::Status details;
  if (details.ParseFromString(status.error_details())) {
    for (const google::protobuf::Any& detail : details.details()) {
      result.SetPayload(detail.type_url(), absl::Cord(detail.value()));
    }
  }
  return result;
}

RpcErrorDetails GetRpcErrorDetails(const absl::Status& status) {
  RpcErrorDetails details;
  google::rpc::ErrorInfo info;
  if (GetDetail(status, &info)) {
    details.reason = info.reason();
    details.metadata.insert(info.metadata().begin(), info.metadata().end());
  }
  google::rpc::BadRequest bad_request;
  if (GetDetail(status, &bad_request)) {
    for (const auto& violation : bad_request.field_violations()) {
      details.fields.push_back(violation.field());
    }
  }
  google::rpc::RetryInfo retry;
  if (GetDetail(status, &retry)) {
    details.retry_delay = base::FromProto(retry.retry_delay());
  }
  return details;
}

bool IsLoading(const RpcErrorDetails& details) {
  const auto state = details.metadata.find("state");
  return details.reason == "MODEL_NOT_READY" &&
         state != details.metadata.end() && state->second == "LOADING";
}

bool MayPass(const absl::Status& error) {
  const RpcErrorDetails details = GetRpcErrorDetails(error);
  // When a server stops, it cancels its unfinished requests. These errors have
  // no reason.
  if (absl::IsCancelled(error)) return details.reason.empty();
  if (!absl::IsUnavailable(error)) return false;
  return details.reason != "MODEL_NOT_READY" || IsLoading(details);
}

std::string TraceIdOf(const RpcErrorDetails& details) {
  const auto found = details.metadata.find("trace_id");
  return found == details.metadata.end() ? "" : found->second;
}

std::string DescribeRpcError(const absl::Status& status) {
  const RpcErrorDetails details = GetRpcErrorDetails(status);
  std::string text = absl::StatusCodeToString(status.code());
  if (!details.reason.empty())
    absl::StrAppend(&text, " (", details.reason, ")");
  if (!details.fields.empty() &&
      !absl::StartsWith(status.message(), details.fields[0])) {
    absl::StrAppend(&text, ": ", details.fields[0]);
  }
  absl::StrAppend(&text, ": ", status.message());
  if (details.retry_delay.value_or(absl::ZeroDuration()) >
      absl::ZeroDuration()) {
    absl::StrAppend(&text, "; retry after ",
                    absl::FormatDuration(*details.retry_delay));
  }
  const std::string trace = TraceIdOf(details);
  if (!trace.empty()) absl::StrAppend(&text, "; trace ", trace);
  return text;
}

}  // namespace sfmamba::client
