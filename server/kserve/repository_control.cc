#include "server/kserve/repository_control.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/errors/reasons.h"
#include "server/kserve/published_model.h"

namespace sfmamba::kserve {
namespace {

constexpr size_t kMaxKeyShown = 60;

std::string FieldOf(absl::string_view key) {
  return absl::StrCat("parameters[\"", key.substr(0, kMaxKeyShown), "\"]");
}

absl::Status UnknownParameter(absl::string_view key,
                              absl::string_view expected) {
  return server::InvalidField(FieldOf(key), expected);
}

}  // namespace

absl::Status RepositoryControl::Check() const {
  return changes_ == nullptr ? server::ModelControlOff() : absl::OkStatus();
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
    const std::string& who,
    const inference::RepositoryModelLoadRequest& request, Done done) {
  const absl::StatusOr<std::string> model = ModelOf(request);
  absl::Status status = model.status();
  status.Update(CheckLoadParameters(request));
  if (!status.ok()) {
    changes_->Log(who, "load", request.model_name(), status);
    return done(status);
  }
  changes_->Load(who, *model, "model_name", /*batching=*/std::nullopt,
                 std::move(done));
}

void RepositoryControl::Unload(
    const std::string& who,
    const inference::RepositoryModelUnloadRequest& request, Done done) {
  const absl::StatusOr<std::string> model = ModelOf(request);
  absl::Status status = model.status();
  status.Update(CheckUnloadParameters(request));
  if (!status.ok()) {
    changes_->Log(who, "unload", request.model_name(), status);
    return done(status);
  }
  changes_->Unload(who, *model, "model_name", std::move(done));
}

absl::Status CheckLoadParameters(
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

absl::Status CheckUnloadParameters(
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

}  // namespace sfmamba::kserve
