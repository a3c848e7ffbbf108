#include "server/kserve/repository_control.h"

#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "server/errors/reasons.h"
#include "server/kserve/load_parameters.h"
#include "server/kserve/published_model.h"
#include "server/security/caller.h"
#include "server/security/gate.h"

namespace sfmamba::kserve {

absl::Status RepositoryControl::Check(const admin::Caller& caller) const {
  if (changes_ != nullptr) return changes_->Check(caller);
  // Only a caller that may administer learns that changes are switched off.
  if (env_.gate != nullptr) {
    const auto allowed = env_.gate->Check(caller.authorization, caller.peer,
                                          security::Scope::kAdmin);
    if (!allowed.ok()) return allowed.status();
  }
  return server::ModelControlOff();
}

template <typename Request>
absl::StatusOr<std::string> RepositoryControl::ModelOf(
    const Request& request) const {
  if (!request.repository_name().empty()) {
    return server::WrongText("repository_name", request.repository_name(),
                             "none: there is one repository");
  }
  const std::string& name = request.model_name();
  if (name.empty()) {
    return server::InvalidField("model_name",
                                "got no name, expected a model's");
  }
  if (absl::StrContains(name, '/')) return server::ModelNotFound(name);
  // A model's second name means the model.
  const auto found = FindModel(env_, name, /*version=*/"", "model_name");
  return found.ok() ? found->version->id() : name;
}

void RepositoryControl::Load(
    const admin::Caller& caller,
    const inference::RepositoryModelLoadRequest& request, Done done) {
  const absl::Status allowed = Check(caller);
  if (!allowed.ok()) return done(allowed);
  const absl::StatusOr<std::string> model = ModelOf(request);
  absl::StatusOr<std::optional<v1::Batching>> batching =
      ReadLoadParameters(request);
  absl::Status status = model.status();
  status.Update(batching.status());
  if (!status.ok()) {
    changes_->Log(caller, "load", request.model_name(), status);
    return done(status);
  }
  changes_->Load(caller, *model, "model_name", *std::move(batching),
                 std::move(done));
}

void RepositoryControl::Unload(
    const admin::Caller& caller,
    const inference::RepositoryModelUnloadRequest& request, Done done) {
  const absl::Status allowed = Check(caller);
  if (!allowed.ok()) return done(allowed);
  const absl::StatusOr<std::string> model = ModelOf(request);
  absl::Status status = model.status();
  status.Update(CheckUnloadParameters(request));
  if (!status.ok()) {
    changes_->Log(caller, "unload", request.model_name(), status);
    return done(status);
  }
  changes_->Unload(caller, *model, "model_name", std::move(done));
}

}  // namespace sfmamba::kserve
