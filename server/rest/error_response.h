#ifndef SFMAMBA_SERVER_REST_ERROR_RESPONSE_H_
#define SFMAMBA_SERVER_REST_ERROR_RESPONSE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/http/exchange.h"

namespace sfmamba::rest {

// Error responses have the HTTP status of the error's code. If the client
// should retry, the response has a Retry-After header in seconds. The value is
// the error's retry hint, rounded up. UNAVAILABLE without a hint gets 1 second.

// Returns the error as google.rpc.Status in protobuf's JSON mapping. The
// details include "@type". If the error has a field, the message starts with
// the field.
http::HttpResponse ErrorResponse(const absl::Status& error);

// Returns the error in the format of the Open Inference Protocol, {"error":
// "<field>: <message>"}. The field has its REST name.
http::HttpResponse KserveError(const absl::Status& error);

// Returns KserveError() if `path` is below /v2, otherwise ErrorResponse().
http::HttpResponse ErrorAt(absl::string_view path, const absl::Status& error);

// Returns ErrorAt() with status `http_code`. Used for requests that the
// transport rejects.
http::HttpResponse RefusalResponse(int http_code, absl::string_view message,
                                   absl::string_view path = "");

// Answers a request whose HTTP method `path` does not support. Returns 204 for
// OPTIONS, otherwise 405. Both responses have the header Allow. `allowed` lists
// the supported methods, such as "GET, HEAD, OPTIONS".
http::HttpResponse OtherMethod(absl::string_view method,
                               absl::string_view allowed,
                               absl::string_view path = "");

// Returns true if `path` equals `folder` or is below `folder`.
bool IsUnder(absl::string_view path, absl::string_view folder);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_ERROR_RESPONSE_H_
