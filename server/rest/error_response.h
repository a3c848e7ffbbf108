#ifndef SFMAMBA_SERVER_REST_ERROR_RESPONSE_H_
#define SFMAMBA_SERVER_REST_ERROR_RESPONSE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/http/exchange.h"

namespace sfmamba::rest {

// Responses to errors have the HTTP status of the error's code. If waiting
// helps, they have Retry-After in seconds: the error's own hint, rounded up, or
// 1 for UNAVAILABLE without a hint.

// Writes an error as google.rpc.Status in protobuf's JSON mapping, its details
// with their "@type". The message begins with the field, if there is one.
http::HttpResponse ErrorResponse(const absl::Status& error);

// Writes an error as the Open Inference Protocol does: {"error": "<field>:
// <message>"}, with the fields of its REST.
http::HttpResponse KserveError(const absl::Status& error);

// KserveError() for paths under /v2, else ErrorResponse().
http::HttpResponse ErrorAt(absl::string_view path, const absl::Status& error);

// ErrorAt() for a request that the transport itself refuses by `http_code`.
http::HttpResponse RefusalResponse(int http_code, absl::string_view message,
                                   absl::string_view path = "");

// Answers an HTTP method that `path` does not serve: 204 for OPTIONS, else 405,
// both with the header Allow. `allowed` are the methods that it serves, such as
// "GET, HEAD, OPTIONS".
http::HttpResponse OtherMethod(absl::string_view method,
                               absl::string_view allowed,
                               absl::string_view path = "");

// Returns whether a path is `folder` or below it.
bool IsUnder(absl::string_view path, absl::string_view folder);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_ERROR_RESPONSE_H_
