#ifndef SFMAMBA_SERVER_TRACING_ENDPOINT_H_
#define SFMAMBA_SERVER_TRACING_ENDPOINT_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace sfmamba::tracing {

// Checks the URL of a collector: http://HOST:PORT or https://HOST:PORT, where
// the port may be missing and a slash may follow. INVALID_ARGUMENT names
// trace_endpoint and what was found, but never shows a user or a password.
absl::Status CheckEndpoint(absl::string_view endpoint);

}  // namespace sfmamba::tracing

#endif  // SFMAMBA_SERVER_TRACING_ENDPOINT_H_
