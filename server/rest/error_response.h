#ifndef SFMAMBA_SERVER_REST_ERROR_RESPONSE_H_
#define SFMAMBA_SERVER_REST_ERROR_RESPONSE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/http/exchange.h"

namespace sfmamba::rest {

// An error response has the HTTP status that belongs to the error's code. If
// the client should retry, the response has the header Retry-After. Its value
// is the error's retry delay in seconds, rounded up. For UNAVAILABLE without a
// retry delay, the value is 1.

// Returns the error as google.rpc.Status in protobuf's JSON mapping. Each
// element of `details` has a member "@type". If the error has a field, the
// message starts with the name of the field.
http::HttpResponse ErrorResponse(const absl::Status& error);

// Returns the error in the format of the Open Inference Protocol:
//   {"error": "<field>: <message>"}
// <field> is the field's name in the JSON request, which may differ from the
// name in gRPC. If the error has no field, the value of "error" is the message
// alone.
http::HttpResponse KserveError(const absl::Status& error);

// Returns KserveError() if `path` is below /v2. Returns ErrorResponse() for
// other paths.
http::HttpResponse ErrorAt(absl::string_view path, const absl::Status& error);

// Returns an error response with status `http_code`, in the format of
// ErrorAt(). Used for requests that the transport rejects.
http::HttpResponse RefusalResponse(int http_code, absl::string_view message,
                                   absl::string_view path = "");

// Returns the response to a request whose path does not serve the HTTP method
// `method`. The status is 204 for OPTIONS and 405 for other methods. The error
// has the format of ErrorAt() for `path`. The response has the header Allow
// with the value `allowed`. This value lists the supported methods, such as
// "GET, HEAD, OPTIONS".
http::HttpResponse OtherMethod(absl::string_view method,
                               absl::string_view allowed,
                               absl::string_view path = "");

// Returns true if `path` equals `folder` or is below `folder`.
bool IsUnder(absl::string_view path, absl::string_view folder);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_ERROR_RESPONSE_H_
