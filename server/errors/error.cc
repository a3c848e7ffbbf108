#include "server/errors/error.h"

#include <optional>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "base/utf8.h"
#include "google/rpc/error_details.pb.h"

namespace sfmamba::server {
namespace {

// The types of the payloads in which an absl::Status stores the details of an
// error. Each payload is a serialized message for the client. ToRpcStatus()
// copies all payloads into the google.rpc.Status that the client receives.
constexpr char kErrorInfo[] = "type.googleapis.com/google.rpc.ErrorInfo";
constexpr char kBadRequest[] = "type.googleapis.com/google.rpc.BadRequest";
constexpr char kQuotaFailure[] = "type.googleapis.com/google.rpc.QuotaFailure";
constexpr char kRetryInfo[] = "type.googleapis.com/google.rpc.RetryInfo";
constexpr char kDomain[] = "sfmamba.serving";

template <typename Message>
void SetPayload(const char* url, const Message& message, absl::Status* status) {
  status->SetPayload(url, absl::Cord(message.SerializeAsString()));
}

template <typename Message>
std::optional<Message> GetPayload(const char* url, const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(url);
  Message message;
  if (!payload || !message.ParseFromString(std::string(*payload))) return {};
  return message;
}

}  // namespace

absl::Status MakeError(absl::StatusCode code, absl::string_view message,
                       ErrorDetail detail) {
  // Error messages may contain client input that is not UTF-8. Protobuf would
  // reject such a string, and all details of the error would be lost.
  const std::string text = base::ToUtf8(message);
  absl::Status status(code, text);
  google::rpc::ErrorInfo info;
  info.set_reason(detail.reason);
  info.set_domain(kDomain);
  for (const auto& [key, value] : detail.metadata) {
    (*info.mutable_metadata())[key] = base::ToUtf8(value);
  }
  SetPayload(kErrorInfo, info, &status);
  if (!detail.field.empty()) {
    google::rpc::BadRequest request;
    auto* violation = request.add_field_violations();
    violation->set_field(base::ToUtf8(detail.field));
    violation->set_description(text);
    SetPayload(kBadRequest, request, &status);
  }
  if (!detail.quota_subject.empty()) {
    google::rpc::QuotaFailure failure;
    auto* violation = failure.add_violations();
    violation->set_subject(base::ToUtf8(detail.quota_subject));
    violation->set_description(text);
    SetPayload(kQuotaFailure, failure, &status);
  }
  if (detail.retry_after != absl::InfiniteDuration()) {
    google::rpc::RetryInfo retry;
    const int64_t nanos = absl::ToInt64Nanoseconds(detail.retry_after);
    retry.mutable_retry_delay()->set_seconds(nanos / 1'000'000'000);
    retry.mutable_retry_delay()->set_nanos(nanos % 1'000'000'000);
    SetPayload(kRetryInfo, retry, &status);
  }
  return status;
}

ErrorDetail GetErrorDetail(const absl::Status& status) {
  ErrorDetail detail;
  if (auto info = GetPayload<google::rpc::ErrorInfo>(kErrorInfo, status)) {
    detail.reason = info->reason();
    for (const auto& [key, value] : info->metadata()) {
      detail.metadata.emplace_back(key, value);
    }
  }
  if (auto bad = GetPayload<google::rpc::BadRequest>(kBadRequest, status)) {
    if (bad->field_violations_size() > 0) {
      detail.field = bad->field_violations(0).field();
    }
  }
  if (auto quota =
          GetPayload<google::rpc::QuotaFailure>(kQuotaFailure, status)) {
    if (quota->violations_size() > 0) {
      detail.quota_subject = quota->violations(0).subject();
    }
  }
  if (auto retry = GetPayload<google::rpc::RetryInfo>(kRetryInfo, status)) {
    detail.retry_after = absl::Seconds(retry->retry_delay().seconds()) +
                         absl::Nanoseconds(retry->retry_delay().nanos());
  }
  return detail;
}

absl::Status InField(absl::string_view prefix, const absl::Status& status) {
  return AtField(absl::StrCat(prefix, GetErrorDetail(status).field), status);
}

absl::Status AtField(absl::string_view field, const absl::Status& status) {
  if (status.ok()) return status;
  ErrorDetail detail = GetErrorDetail(status);
  detail.field = std::string(field);
  return MakeError(status.code(), status.message(), std::move(detail));
}

absl::Status WithMetadata(absl::string_view key, absl::string_view value,
                          const absl::Status& status) {
  if (status.ok()) return status;
  ErrorDetail detail = GetErrorDetail(WithErrorInfo(status));
  detail.metadata.emplace_back(key, value);
  return MakeError(status.code(), status.message(), std::move(detail));
}

std::string GetMetadata(absl::string_view key, const absl::Status& status) {
  for (const auto& [name, value] : GetErrorDetail(status).metadata) {
    if (name == key) return value;
  }
  return "";
}

absl::Status WithErrorInfo(const absl::Status& status) {
  ErrorDetail detail = GetErrorDetail(status);
  if (status.ok() || !detail.reason.empty()) return status;
  detail.reason = absl::StatusCodeToString(status.code());
  return MakeError(status.code(), status.message(), std::move(detail));
}

google::rpc::Status ToRpcStatus(const absl::Status& status) {
  google::rpc::Status proto;
  if (status.ok()) return proto;
  const absl::Status detailed = WithErrorInfo(status);
  proto.set_code(static_cast<int>(detailed.code()));
  proto.set_message(std::string(detailed.message()));
  detailed.ForEachPayload(
      [&proto](absl::string_view url, const absl::Cord& payload) {
        google::protobuf::Any* any = proto.add_details();
        any->set_type_url(std::string(url));
        any->set_value(std::string(payload));
      });
  return proto;
}

}  // namespace sfmamba::server
