#ifndef SFMAMBA_SERVER_REST_OPEN_API_H_
#define SFMAMBA_SERVER_REST_OPEN_API_H_

#include <string>

#include "absl/strings/string_view.h"
#include "server/rest/method_paths.h"

namespace sfmamba::rest {

// Returns the OpenAPI 3.0.3 description of the REST API as JSON. The
// description contains the methods in `paths`, their messages and the probes.
// The messages are in protobuf's JSON mapping, with the comments of
// vision.proto.
std::string OpenApi(const MethodPaths& paths, absl::string_view version);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_OPEN_API_H_
