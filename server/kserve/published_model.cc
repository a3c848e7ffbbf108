#include "server/kserve/published_model.h"

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/errors/reasons.h"

namespace sfmamba::kserve {
namespace {

constexpr char kEncodedSuffix[] = "_encoded";

absl::StatusOr<std::shared_ptr<repository::ModelVersion>> FindVersion(
    const repository::ModelRepository& repository, absl::string_view id,
    absl::string_view version, absl::string_view field,
    repository::ModelRepository::Use use) {
  const std::string full =
      version.empty() ? absl::StrCat("models/", id)
                      : absl::StrCat("models/", id, "/versions/", version);
  return repository.Find(full, field, std::nullopt, use);
}

}  // namespace

std::string PublishedModel::name() const {
  return absl::StrCat(version->id(), encoded ? kEncodedSuffix : "");
}

absl::StatusOr<PublishedModel> FindModel(
    const prediction::TransportEnvironment& environment, absl::string_view name,
    absl::string_view version, absl::string_view field,
    repository::ModelRepository::Use use) {
  if (name.empty()) {
    return server::InvalidField(field, "got no name, expected a model's");
  }
  // This protocol's names are ids; Find() would also take "models/{id}".
  if (absl::StrContains(name, '/')) return server::ModelNotFound(name);
  const repository::ModelRepository& repository = environment.repository;
  auto found = FindVersion(repository, name, version, field, use);
  if (found.ok()) return PublishedModel{*std::move(found)};
  absl::string_view id = name;
  // A model whose own id ends in the suffix goes before another's second name.
  const bool may_be_second =
      environment.encoded_models && absl::ConsumeSuffix(&id, kEncodedSuffix) &&
      !FindVersion(repository, name, /*version=*/"", field,
                   repository::ModelRepository::Use::kDescribe)
           .ok();
  if (!may_be_second) return found.status();
  auto second = FindVersion(repository, id, version, field, use);
  if (!second.ok()) return found.status();
  return PublishedModel{*std::move(second), /*encoded=*/true};
}

std::vector<PublishedModel> ListModels(
    const prediction::TransportEnvironment& environment) {
  std::vector<PublishedModel> models;
  for (const auto& version : environment.repository.List()) {
    models.push_back({version});
    if (!environment.encoded_models) continue;
    PublishedModel second{version, /*encoded=*/true};
    const auto own = FindModel(environment, second.name(), "", "name");
    if (own.ok() && own->encoded) models.push_back(std::move(second));
  }
  return models;
}

}  // namespace sfmamba::kserve
