#ifndef SFMAMBA_SERVER_REST_KSERVE_CONTROL_BODY_H_
#define SFMAMBA_SERVER_REST_KSERVE_CONTROL_BODY_H_

#include <string>

#include "absl/status/statusor.h"
#include "inference/grpc_service.pb.h"

namespace sfmamba::rest {

// Reads the body of a request to load or to unload `model`, such as
// {"parameters": {"config": "{\"max_batch_size\": 4}"}}, in the words of gRPC;
// an empty body is one without parameters. INVALID_ARGUMENT if it is too large,
// no such object, or if a parameter is neither a text, a whole number nor a
// boolean.
absl::StatusOr<inference::RepositoryModelLoadRequest> ReadLoadBody(
    const std::string& model, const std::string& body);
absl::StatusOr<inference::RepositoryModelUnloadRequest> ReadUnloadBody(
    const std::string& model, const std::string& body);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_KSERVE_CONTROL_BODY_H_
