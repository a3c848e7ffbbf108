#ifndef SFMAMBA_SERVER_REST_ERROR_RESPONSE_H_
#define SFMAMBA_SERVER_REST_ERROR_RESPONSE_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/http/exchange.h"

namespace sfmamba::rest {

// What the header Retry-After says of an error, in seconds: the error's own
// hint, rounded up, or 1 for UNAVAILABLE without one. None for other errors.
std::optional<std::string> RetryAfter(const absl::Status& error);

// An error as google.rpc.Status in protobuf's JSON mapping, its details with
// their "@type", by the HTTP status of its code.
http::HttpResponse ErrorResponse(const absl::Status& error);

// ErrorResponse() for what the transport itself refuses; `http_code` is an
// error's.
http::HttpResponse RefusalResponse(int http_code, absl::string_view message);

// Answers a method that a path does not serve; it serves `allowed`, such as
// "GET, HEAD, OPTIONS": 204 for OPTIONS, else 405, both with the header Allow.
http::HttpResponse OtherMethod(absl::string_view method,
                               absl::string_view allowed);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_ERROR_RESPONSE_H_
