#ifndef SFMAMBA_SERVER_ERRORS_ERROR_H_
#define SFMAMBA_SERVER_ERRORS_ERROR_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "google/rpc/status.pb.h"

namespace sfmamba::server {

// The details of an error that a client receives besides the code and the
// message.
struct ErrorDetail {
  std::string reason;  // ErrorInfo.reason, such as "QUEUE_FULL".
  std::string field;  // BadRequest path, such as "images[2].encoded", or empty.
  // How long the client should wait before it retries. If infinite, the client
  // receives no retry delay.
  absl::Duration retry_after = absl::InfiniteDuration();
  // The client that exceeded its quota, such as "ipv4:10.0.0.7". Sent as the
  // subject of a QuotaFailure. Empty for other errors.
  std::string quota_subject;
  std::vector<std::pair<std::string, std::string>> metadata;
};

// Returns a status that carries `detail` as payloads. ToGrpcStatus() sends the
// payloads as google.rpc.ErrorInfo (domain "sfmamba.serving"), BadRequest,
// QuotaFailure, RetryInfo and the trailer grpc-retry-pushback-ms.
absl::Status MakeError(absl::StatusCode code, absl::string_view message,
                       ErrorDetail detail);

// Returns the detail that MakeError stored in `status`, or an empty detail.
ErrorDetail GetErrorDetail(const absl::Status& status);

// Returns the value of `key` in the error's metadata, or "" if the key is
// missing.
std::string GetMetadata(absl::string_view key, const absl::Status& status);

// Returns the error with `prefix` added before its field. For example,
// "images[2]" before ".encoded" gives "images[2].encoded".
absl::Status InField(absl::string_view prefix, const absl::Status& status);

// Returns the error with its field replaced by `field`.
absl::Status AtField(absl::string_view field, const absl::Status& status);

// Returns the error with `key` and `value` added to its metadata.
absl::Status WithMetadata(absl::string_view key, absl::string_view value,
                          const absl::Status& status);

// Returns `status` if it has a reason. Otherwise returns the same error with
// the name of its code as the reason.
absl::Status WithErrorInfo(const absl::Status& status);

// Converts the error to a google.rpc.Status. The result always has an
// ErrorInfo, see WithErrorInfo(). It also contains the error's BadRequest,
// QuotaFailure and RetryInfo, if any.
google::rpc::Status ToRpcStatus(const absl::Status& status);

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_ERRORS_ERROR_H_
