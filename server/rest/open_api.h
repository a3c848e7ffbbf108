#ifndef SFMAMBA_SERVER_REST_OPEN_API_H_
#define SFMAMBA_SERVER_REST_OPEN_API_H_

#include "absl/strings/string_view.h"

namespace sfmamba::rest {

// The description of REST in OpenAPI 3.0.3, as JSON: the typed API, its
// messages and their comments as vision.proto has them in protobuf's JSON
// mapping, and the probes. Of the server's version it has "@VERSION@".
// open_api.py writes it into the program.
absl::string_view OpenApi();

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_OPEN_API_H_
