#ifndef SFMAMBA_SERVER_REST_KSERVE_CONTROL_BODY_H_
#define SFMAMBA_SERVER_REST_KSERVE_CONTROL_BODY_H_

#include <string>

#include "absl/status/statusor.h"
#include "inference/grpc_service.pb.h"

namespace sfmamba::rest {

// These read the body of a request about the repository, a JSON object, in the
// words of gRPC; an empty body is an empty object. INVALID_ARGUMENT if it is
// too large, no object, or if a value is of another type.

// {"ready": true}: of all models those alone that are ready.
absl::StatusOr<inference::RepositoryIndexRequest> ReadIndexBody(
    const std::string& body);

// {"parameters": {"config": "{\"max_batch_size\": 4}"}}, to load or to unload
// `model`; a parameter is a text, a whole number or a boolean.
absl::StatusOr<inference::RepositoryModelLoadRequest> ReadLoadBody(
    const std::string& model, const std::string& body);
absl::StatusOr<inference::RepositoryModelUnloadRequest> ReadUnloadBody(
    const std::string& model, const std::string& body);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_KSERVE_CONTROL_BODY_H_
