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

// What a client learns of an error besides code and message.
struct ErrorDetail {
  std::string reason;  // ErrorInfo.reason, such as "QUEUE_FULL".
  std::string field;  // BadRequest path, such as "images[2].encoded"; or empty.
  absl::Duration retry_after = absl::InfiniteDuration();  // Infinite: no hint.
  // QuotaFailure: who has used up a quota, such as "ipv4:10.0.0.7"; or empty.
  std::string quota_subject;
  std::vector<std::pair<std::string, std::string>> metadata;
};

// A status that carries `detail` as payload; ToGrpcStatus turns it into
// google.rpc.ErrorInfo (domain "sfmamba.serving"), BadRequest, QuotaFailure,
// RetryInfo and the grpc-retry-pushback-ms trailer.
absl::Status MakeError(absl::StatusCode code, absl::string_view message,
                       ErrorDetail detail);

// The detail that MakeError put into `status`; empty if there is none.
ErrorDetail GetErrorDetail(const absl::Status& status);

// The value of `key` in the error's metadata; empty if there is none.
std::string GetMetadata(absl::string_view key, const absl::Status& status);

// Returns the error with `prefix` put before its field ("images[2]" +
// ".encoded").
absl::Status InField(absl::string_view prefix, const absl::Status& status);

// Returns the error with `field` in place of its own.
absl::Status AtField(absl::string_view field, const absl::Status& status);

// Returns the error with `key`: `value` added to its ErrorInfo.
absl::Status WithMetadata(absl::string_view key, absl::string_view value,
                          const absl::Status& status);

// Returns the error with its code's name as reason if it has none.
absl::Status WithErrorInfo(const absl::Status& status);

// The error as a message: with ErrorInfo always, see WithErrorInfo(), and
// BadRequest and RetryInfo where they apply.
google::rpc::Status ToRpcStatus(const absl::Status& status);

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_ERRORS_ERROR_H_
