#ifndef SFMAMBA_SERVER_REST_CALL_HEADERS_H_
#define SFMAMBA_SERVER_REST_CALL_HEADERS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/http/exchange.h"
#include "server/observability/metrics.h"
#include "server/observability/request_record.h"
#include "server/prediction/prediction.h"

namespace sfmamba::rest {

// Reads the facts about a call that predictions need from a request's headers.
//
// The deadline is `now` and what `grpc-timeout` says (gRPC's form: at most 8
// digits and one of H M S m u n, "100m" for 100 ms), or `x-request-timeout`
// (seconds, "1.5", or a duration, "1500ms"). INVALID_ARGUMENT with the header
// as field if the value is neither positive nor in form, or if there are two.
absl::StatusOr<prediction::CallInfo> CallOf(const http::HttpRequest& request,
                                            absl::Time now);

// The value of a header, its name in lower case; empty if there is none. Of
// several the first.
absl::string_view Header(const http::HttpRequest& request,
                         absl::string_view name);

// The record of a request over HTTP, in the name of its caller.
class HttpRecord : public observability::RequestRecord {
 public:
  // `body_bytes`: of a request whose body was taken.
  HttpRecord(observability::Method method, const http::HttpRequest& request,
             const prediction::PredictionEnvironment& environment,
             int64_t body_bytes = 0);
};

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_CALL_HEADERS_H_
