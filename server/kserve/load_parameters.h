#ifndef SFMAMBA_SERVER_KSERVE_LOAD_PARAMETERS_H_
#define SFMAMBA_SERVER_KSERVE_LOAD_PARAMETERS_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "inference/grpc_service.pb.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::kserve {

// What the parameters of a request to load say of batches, in place of the
// model's own configuration: "config" is a ModelConfig in JSON, of which
// max_batch_size, dynamic_batching.max_queue_delay_microseconds and
// dynamic_batching.default_queue_policy.max_queue_size can be set, and name if
// it is the model's. None if there is no such parameter.
//
// UNIMPLEMENTED with reason NOT_SUPPORTED for parameters "file:...", which
// would bring a model's files along; INVALID_ARGUMENT, naming the parameter,
// for everything else.
absl::StatusOr<std::optional<v1::Batching>> ReadLoadParameters(
    const inference::RepositoryModelLoadRequest& request);

// Checks the parameters of a request to unload: "unload_dependents" is a
// boolean without effect, because no model depends on another.
// INVALID_ARGUMENT, naming the parameter, for everything else.
absl::Status CheckUnloadParameters(
    const inference::RepositoryModelUnloadRequest& request);

}  // namespace sfmamba::kserve

#endif  // SFMAMBA_SERVER_KSERVE_LOAD_PARAMETERS_H_
