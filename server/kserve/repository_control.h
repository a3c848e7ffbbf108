#ifndef SFMAMBA_SERVER_KSERVE_REPOSITORY_CONTROL_H_
#define SFMAMBA_SERVER_KSERVE_REPOSITORY_CONTROL_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "inference/grpc_service.pb.h"
#include "server/admin/model_changes.h"
#include "server/prediction/transport_environment.h"

namespace sfmamba::kserve {

// Checks that a request to load has no parameters. UNIMPLEMENTED with reason
// NOT_SUPPORTED for "config", which would replace the model's configuration,
// and for "file:...", which would bring a model's files along.
// INVALID_ARGUMENT, naming the parameter, for everything else.
absl::Status CheckLoadParameters(
    const inference::RepositoryModelLoadRequest& request);

// Checks the parameters of a request to unload: "unload_dependents" is a
// boolean without effect, because no model depends on another.
// INVALID_ARGUMENT, naming the parameter, for everything else.
absl::Status CheckUnloadParameters(
    const inference::RepositoryModelUnloadRequest& request);

// Loads and unloads models for clients of this protocol, by whatever transport.
// Thread-safe.
class RepositoryControl {
 public:
  using Done = admin::ModelChanges::Done;

  // `environment` and `changes` outlive this. Null: nothing is loaded,
  // FAILED_PRECONDITION with reason MODEL_CONTROL_OFF.
  RepositoryControl(const prediction::TransportEnvironment& environment,
                    admin::ModelChanges* changes)
      : env_(environment), changes_(changes) {}

  // An error if model control is off. Load() and Unload() want it asked before.
  absl::Status Check() const;

  // See CheckLoadParameters() and ModelRepository::LoadModel(). `done` may be
  // called before this returns, or after this is gone.
  void Load(const std::string& who,
            const inference::RepositoryModelLoadRequest& request, Done done);
  void Unload(const std::string& who,
              const inference::RepositoryModelUnloadRequest& request,
              Done done);

 private:
  // The id of what a request names, or what is wrong with it.
  template <typename Request>
  absl::StatusOr<std::string> ModelOf(const Request& request) const;

  const prediction::TransportEnvironment& env_;
  admin::ModelChanges* const changes_;
};

}  // namespace sfmamba::kserve

#endif  // SFMAMBA_SERVER_KSERVE_REPOSITORY_CONTROL_H_
