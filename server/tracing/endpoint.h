#ifndef SFMAMBA_SERVER_TRACING_ENDPOINT_H_
#define SFMAMBA_SERVER_TRACING_ENDPOINT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sfmamba::tracing {

// The URL that spans are posted to: `endpoint`, an http:// or https:// URL,
// with OTLP's path /v1/traces if it has none. INVALID_ARGUMENT, naming
// trace_endpoint, for any other text and for one with a user or a password.
absl::StatusOr<std::string> TracesUrl(absl::string_view endpoint);

}  // namespace sfmamba::tracing

#endif  // SFMAMBA_SERVER_TRACING_ENDPOINT_H_
