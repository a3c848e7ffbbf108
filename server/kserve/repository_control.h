#ifndef SFMAMBA_SERVER_KSERVE_REPOSITORY_CONTROL_H_
#define SFMAMBA_SERVER_KSERVE_REPOSITORY_CONTROL_H_

#include <string>

#include "inference/grpc_service.pb.h"
#include "server/admin/model_changes.h"
#include "server/prediction/transport_environment.h"

namespace sfmamba::kserve {

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

  // Whether the caller may load and unload, to be asked before its request is
  // read. Both below ask it too.
  absl::Status Check(const admin::Caller& caller) const;

  // See ReadLoadParameters() and ModelRepository::LoadModel(). `done` may be
  // called before this returns, or after this is gone.
  void Load(const admin::Caller& caller,
            const inference::RepositoryModelLoadRequest& request, Done done);
  void Unload(const admin::Caller& caller,
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
