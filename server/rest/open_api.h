#ifndef SFMAMBA_SERVER_REST_OPEN_API_H_
#define SFMAMBA_SERVER_REST_OPEN_API_H_

#include <string>

#include "absl/strings/string_view.h"

namespace sfmamba::rest {

// The description of REST in OpenAPI 3.0.3, as JSON, for the server's version:
// the typed API, its messages and their comments as vision.proto has them in
// protobuf's JSON mapping, and the probes. Takes milliseconds.
std::string OpenApi(absl::string_view version);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_OPEN_API_H_
