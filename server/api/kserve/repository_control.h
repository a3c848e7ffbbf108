#ifndef SFMAMBA_SERVER_API_KSERVE_REPOSITORY_CONTROL_H_
#define SFMAMBA_SERVER_API_KSERVE_REPOSITORY_CONTROL_H_

#include "absl/status/status.h"
#include "inference/grpc_service.pb.h"
#include "server/admin/model_changes.h"
#include "server/call/method_table.h"

namespace sfmamba::kserve {

// Checks that a request to load has no parameters. UNIMPLEMENTED with reason
// NOT_SUPPORTED for "config", which would replace the model's configuration,
// and for "file:...", which would bring a model's files along.
// INVALID_ARGUMENT, naming the parameter, for everything else.
absl::Status CheckParameters(
    const inference::RepositoryModelLoadRequest& request);

// Checks the parameters of a request to unload: "unload_dependents" is a
// boolean without effect, because no model depends on another.
// INVALID_ARGUMENT, naming the parameter, for everything else.
absl::Status CheckParameters(
    const inference::RepositoryModelUnloadRequest& request);

// These make the handlers of RepositoryModelLoad and RepositoryModelUnload,
// which answer when the change has ended. `changes` outlives the calls. Null:
// models are neither loaded nor unloaded, FAILED_PRECONDITION with reason
// MODEL_CONTROL_OFF.
call::Handler LoadModel(admin::ModelChanges* changes);
call::Handler UnloadModel(admin::ModelChanges* changes);

}  // namespace sfmamba::kserve

#endif  // SFMAMBA_SERVER_API_KSERVE_REPOSITORY_CONTROL_H_
