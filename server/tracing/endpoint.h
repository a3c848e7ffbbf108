#ifndef SFMAMBA_SERVER_TRACING_ENDPOINT_H_
#define SFMAMBA_SERVER_TRACING_ENDPOINT_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace sfmamba::tracing {

// Checks the URL of a collector, which must be http://HOST:PORT or
// https://HOST:PORT. The port may be missing, and a slash may follow. If the
// URL is invalid, returns INVALID_ARGUMENT that names the setting
// trace_endpoint. The error never contains a user name or a password.
absl::Status CheckEndpoint(absl::string_view endpoint);

}  // namespace sfmamba::tracing

#endif  // SFMAMBA_SERVER_TRACING_ENDPOINT_H_
