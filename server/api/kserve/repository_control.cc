#include "server/api/kserve/repository_control.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/api/change.h"
#include "server/api/kserve/published_model.h"
#include "server/errors/reasons.h"
#include "server/prediction/transport_environment.h"

namespace sfmamba::kserve {
namespace {

using admin::ModelChanges;
using prediction::TransportEnvironment;

constexpr size_t kMaxKeyShown = 60;

std::string FieldOf(absl::string_view key) {
  return absl::StrCat("parameters[\"", key.substr(0, kMaxKeyShown), "\"]");
}

absl::Status UnknownParameter(absl::string_view key,
                              absl::string_view expected) {
  return server::InvalidField(FieldOf(key), expected);
}

// Returns the id of the requested model.
template <typename Request>
absl::StatusOr<std::string> ModelOf(const TransportEnvironment& environment,
                                    const Request& request) {
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
  // The second name of a model also selects the model.
  const auto found = FindModel(environment, name, /*version=*/"", "model_name");
  return found.ok() ? found->version->id() : name;
}

// Returns the id of the model to change. If the request is invalid, returns an
// error and logs the failed `action`, such as "load".
template <typename Request>
absl::StatusOr<std::string> Check(ModelChanges* changes, const char* action,
                                  const TransportEnvironment& environment,
                                  const std::string& who,
                                  const Request& request) {
  if (changes == nullptr) return server::ModelControlOff();
  absl::StatusOr<std::string> model = ModelOf(environment, request);
  absl::Status status = model.status();
  status.Update(CheckParameters(request));
  if (status.ok()) return model;
  changes->Log(who, action, request.model_name(), status);
  return status;
}

}  // namespace

absl::Status CheckParameters(
    const inference::RepositoryModelLoadRequest& request) {
  for (const auto& [key, value] : request.parameters()) {
    if (absl::StartsWith(key, "file:")) {
      return server::NotSupported("files that come with a request to load");
    }
    if (key == "config") {
      return server::Removed(
          FieldOf(key),
          "set the values in the model's config.textproto, or load it by "
          "AdminService.LoadModel, which has `batching`");
    }
    return UnknownParameter(key, "expected no parameters");
  }
  return absl::OkStatus();
}

absl::Status CheckParameters(
    const inference::RepositoryModelUnloadRequest& request) {
  for (const auto& [key, value] : request.parameters()) {
    if (key != "unload_dependents") {
      return UnknownParameter(key,
                              "expected the parameter unload_dependents only");
    }
    if (!value.has_bool_param()) {
      return server::InvalidField(FieldOf(key), "expected a boolean");
    }
  }
  return absl::OkStatus();
}

call::Handler LoadModel(ModelChanges* changes) {
  return api::Change<inference::RepositoryModelLoadRequest,
                     inference::RepositoryModelLoadResponse>(
      [changes](const auto& environment, const auto& who, const auto& request,
                auto done) {
        const auto model = Check(changes, "load", environment, who, request);
        if (!model.ok()) return done(model.status());
        changes->Load(who, *model, "model_name", /*batching=*/std::nullopt,
                      std::move(done));
      },
      [](const auto&, const auto&, auto*) {});
}

call::Handler UnloadModel(ModelChanges* changes) {
  return api::Change<inference::RepositoryModelUnloadRequest,
                     inference::RepositoryModelUnloadResponse>(
      [changes](const auto& environment, const auto& who, const auto& request,
                auto done) {
        const auto model = Check(changes, "unload", environment, who, request);
        if (!model.ok()) return done(model.status());
        changes->Unload(who, *model, "model_name", std::move(done));
      },
      [](const auto&, const auto&, auto*) {});
}

}  // namespace sfmamba::kserve
