#ifndef SFMAMBA_SERVER_REST_OPEN_API_H_
#define SFMAMBA_SERVER_REST_OPEN_API_H_

#include <string>

#include "absl/strings/string_view.h"
#include "server/rest/method_paths.h"

namespace sfmamba::rest {

// Returns the description of REST in OpenAPI 3.0.3, as JSON: the methods at
// `paths`, their messages and the comments of vision.proto in protobuf's JSON
// mapping, and the probes.
std::string OpenApi(const MethodPaths& paths, absl::string_view version);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_OPEN_API_H_
