#ifndef SFMAMBA_SERVER_API_KSERVE_REPOSITORY_CONTROL_H_
#define SFMAMBA_SERVER_API_KSERVE_REPOSITORY_CONTROL_H_

#include "absl/status/status.h"
#include "inference/grpc_service.pb.h"
#include "server/admin/model_changes.h"
#include "server/call/method_table.h"

namespace sfmamba::kserve {

// Checks that a load request has no parameters. If the request has a parameter,
// returns one of these errors:
// - UNIMPLEMENTED with reason NOT_SUPPORTED for "config", which replaces the
//   model's configuration.
// - UNIMPLEMENTED with reason NOT_SUPPORTED for "file:...", which uploads a
//   model's files.
// - INVALID_ARGUMENT with the parameter's name for any other parameter.
absl::Status CheckParameters(
    const inference::RepositoryModelLoadRequest& request);

// Checks the parameters of an unload request. Allows only the boolean parameter
// "unload_dependents", which has no effect because no model depends on another
// model. For any other parameter, returns INVALID_ARGUMENT with the parameter's
// name.
absl::Status CheckParameters(
    const inference::RepositoryModelUnloadRequest& request);

// Return the handlers of RepositoryModelLoad and RepositoryModelUnload. The
// response is sent when the change has ended. `changes` must outlive the calls.
// If `changes` is null, every call fails with FAILED_PRECONDITION and reason
// MODEL_CONTROL_OFF.
call::Handler LoadModel(admin::ModelChanges* changes);
call::Handler UnloadModel(admin::ModelChanges* changes);

}  // namespace sfmamba::kserve

#endif  // SFMAMBA_SERVER_API_KSERVE_REPOSITORY_CONTROL_H_
