#ifndef SFMAMBA_SERVER_TRACING_ENDPOINT_H_
#define SFMAMBA_SERVER_TRACING_ENDPOINT_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace sfmamba::tracing {

// Checks the URL of a collector. A valid URL consists of http://HOST or
// https://HOST, then optionally :PORT, then optionally a slash. Port 4318 is
// invalid, because collectors use it for OTLP over HTTP instead of gRPC.
// Returns INVALID_ARGUMENT if the URL is invalid. The error names the setting
// trace_endpoint. If the URL contains a user name, the error does not show the
// URL, because the URL may also contain a password.
absl::Status CheckEndpoint(absl::string_view endpoint);

}  // namespace sfmamba::tracing

#endif  // SFMAMBA_SERVER_TRACING_ENDPOINT_H_
