#ifndef SFMAMBA_SERVER_REST_CALL_HEADERS_H_
#define SFMAMBA_SERVER_REST_CALL_HEADERS_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/http/exchange.h"
#include "server/prediction/prediction_request.h"

namespace sfmamba::rest {

// Reads what a prediction must know of a call from the request's headers.
//
// The deadline is `now` plus the header `grpc-timeout` (gRPC's form: at most 8
// digits and one of H M S m u n, "100m" for 100 ms) or `x-request-timeout`
// (seconds, "1.5", or a duration, "1500ms"). INVALID_ARGUMENT with the header
// as field if the value is not positive or has another form, or if a request
// has two such headers.
absl::StatusOr<prediction::CallInfo> CallOf(const http::HttpRequest& request,
                                            absl::Time now);

// Returns the value of a header, whose name is in lower case. Empty if there is
// none. If there are several, the first.
absl::string_view Header(const http::HttpRequest& request,
                         absl::string_view name);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_CALL_HEADERS_H_
