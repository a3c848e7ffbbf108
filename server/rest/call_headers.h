#ifndef SFMAMBA_SERVER_REST_CALL_HEADERS_H_
#define SFMAMBA_SERVER_REST_CALL_HEADERS_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/http/exchange.h"
#include "server/prediction/prediction_request.h"

namespace sfmamba::rest {

// Reads information about a call, such as its deadline, from the headers of the
// request.
//
// The deadline is `now` plus the timeout in one of these headers:
// - `grpc-timeout`: at most 8 digits and a unit of H, M, S, m, u or n, such as
//   "100m" for 100 ms.
// - `x-request-timeout`: seconds, such as "1.5", or a duration, such as
//   "1500ms".
// Returns INVALID_ARGUMENT if the timeout is malformed or not positive. Also
// returns INVALID_ARGUMENT if there is more than one timeout header. The
// error's field is the name of the header.
absl::StatusOr<prediction::CallInfo> CallOf(const http::HttpRequest& request,
                                            absl::Time now);

// Returns the value of the header `name`, which must be in lower case. Returns
// an empty string if there is no such header. Returns the first value if there
// are several.
absl::string_view Header(const http::HttpRequest& request,
                         absl::string_view name);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_CALL_HEADERS_H_
