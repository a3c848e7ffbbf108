#include "server/repository/model_catalog.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/closest_name.h"
#include "server/errors/reasons.h"
#include "server/repository/model_directory.h"
#include "server/repository/model_name.h"

namespace sfmamba::repository {
namespace {

using observability::ModelState;

// The maximum number of names that an error lists.
constexpr size_t kMostListed = 10;

void ShowState(const ModelVersion& version) {
  version.metrics()->StateChanged(version.state());
}

// Returns "; WHAT a, b, c", in which a, b and c are the names. Returns "" if
// there are no names or more than kMostListed.
std::string Listed(absl::string_view what,
                   const std::vector<std::string>& names) {
  if (names.empty() || names.size() > kMostListed) return "";
  return absl::StrCat("; ", what, " ", absl::StrJoin(names, ", "));
}

// Returns a hint for an error. The error says that `entry` does not have the
// version or the label in `name`. If a similar label exists, the hint names
// only this label. Otherwise the hint lists the existing versions or labels.
std::string WhatEntryHas(const ModelName& name, const ModelEntry& entry) {
  std::vector<std::string> found;
  if (!name.label.empty()) {
    for (const auto& [label, version] : entry.labels()) found.push_back(label);
    if (found.empty()) return absl::StrCat("; ", name.id, " has no labels");
    const std::string closest = base::ClosestName(name.label, found);
    if (!closest.empty()) {
      return absl::StrCat(", did you mean \"models/", name.id, "/labels/",
                          closest, "\"");
    }
    return Listed(
        absl::StrCat(name.id, found.size() == 1 ? " has label" : " has labels"),
        found);
  }
  for (const auto& [number, version] : entry.versions()) {
    found.push_back(absl::StrCat(number));
  }
  return Listed(absl::StrCat(name.id, found.size() == 1 ? " has version"
                                                        : " has versions"),
                found);
}

}  // namespace

std::string ModelCatalog::OtherModels(absl::string_view id) const {
  std::vector<std::string> ids;
  for (const auto& [other, entry] : entries_) ids.push_back(other);
  return OtherIds(id, ids);
}

absl::Status ModelCatalog::NoModel(const std::string& id) const {
  return server::ModelNotFound(id, OtherModels(id));
}

absl::Status ModelCatalog::NoVersion(const std::string& id, int64_t number,
                                     const ModelEntry& entry) const {
  return server::ModelNotFound(VersionName(id, number),
                               WhatEntryHas({id, number, ""}, entry));
}

absl::StatusOr<ModelCatalog::Version> ModelCatalog::FindOnly(
    absl::string_view field, std::optional<model::VisionTask> task) const {
  // If the catalog has only one model, this model is returned even if its task
  // is not the requested `task`.
  const bool is_only = entries_.size() == 1;
  std::vector<Version> found, defaults;
  for (const auto& [id, entry] : entries_) {
    const Version version = entry.Default();
    if (!is_only && task.has_value() && version->task() != task) continue;
    found.push_back(version);
    if (task.has_value() && version->is_default()) defaults.push_back(version);
  }
  if (found.size() == 1) return found[0];
  if (defaults.size() == 1) return defaults[0];
  return server::InvalidField(
      field, absl::StrCat(
                 "got no name, expected one: there are ", found.size(),
                 " models", task ? absl::StrCat(" for ", TaskName(*task)) : "",
                 defaults.empty() ? ""
                                  : absl::StrCat(", ", defaults.size(),
                                                 " of them default_for_task")));
}

absl::StatusOr<ModelCatalog::Version> ModelCatalog::Find(
    absl::string_view name, absl::string_view field,
    std::optional<model::VisionTask> task) const {
  if (name.empty()) {
    absl::MutexLock lock(&mu_);
    return FindOnly(field, task);
  }
  const absl::StatusOr<ModelName> parsed = ParseModelName(name, field);
  if (!parsed.ok()) return parsed.status();
  absl::MutexLock lock(&mu_);
  const auto found = entries_.find(parsed->id);
  if (found == entries_.end()) {
    return server::ModelNotFound(name, OtherModels(parsed->id));
  }
  const ModelEntry& entry = found->second;
  Version version = parsed->version != 0    ? entry.Find(parsed->version)
                    : parsed->label.empty() ? entry.Default()
                                            : entry.FindLabelled(parsed->label);
  if (version == nullptr) {
    return server::ModelNotFound(name, WhatEntryHas(*parsed, entry));
  }
  return version;
}

std::vector<ModelCatalog::Version> ModelCatalog::List() const {
  absl::MutexLock lock(&mu_);
  std::vector<Version> all;
  for (const auto& [id, entry] : entries_) {
    for (const auto& [number, version] : entry.versions()) {
      all.push_back(version);
    }
  }
  return all;
}

bool ModelCatalog::IsServing(const std::string& id) const {
  for (const auto& [number, version] : VersionsOf(id)) {
    if (version->state() == ModelState::kReady) return true;
  }
  return false;
}

absl::Status ModelCatalog::SetLabel(const std::string& id,
                                    const std::string& label,
                                    std::optional<int64_t> version) {
  if (!IsId(label)) {
    return server::WrongText("label", label,
                             "a label of [A-Za-z0-9][A-Za-z0-9._-]{0,127}");
  }
  absl::MutexLock lock(&mu_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return NoModel(id);
  if (version.has_value()) {
    const Version labelled = found->second.Find(*version);
    if (labelled == nullptr) return NoVersion(id, *version, found->second);
    if (labelled->state() != ModelState::kReady) {
      return server::ModelNotReady(
          labelled->name(), observability::ModelStateName(labelled->state()),
          labelled->state_reason());
    }
    const auto& labels = found->second.labels();
    if (labels.size() >= kMostLabels && labels.count(label) == 0) {
      return server::TooManyLabels(absl::StrCat("models/", id), kMostLabels);
    }
  }
  found->second.SetLabel(label, version);
  return absl::OkStatus();
}

ModelCatalog::Version ModelCatalog::Get(const std::string& id,
                                        int64_t number) const {
  absl::MutexLock lock(&mu_);
  const auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : found->second.Find(number);
}

std::map<int64_t, ModelCatalog::Version> ModelCatalog::VersionsOf(
    const std::string& id) const {
  absl::MutexLock lock(&mu_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return {};
  return found->second.versions();
}

std::set<int64_t> ModelCatalog::LabelledOf(const std::string& id) const {
  absl::MutexLock lock(&mu_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return {};
  return found->second.labelled();
}

void ModelCatalog::ClearLabels(const std::string& id) {
  absl::MutexLock lock(&mu_);
  const auto found = entries_.find(id);
  if (found != entries_.end()) found->second.ClearLabels();
}

ModelCatalog::Version ModelCatalog::Make(const std::string& id, int64_t number,
                                         const VersionPath& path) const {
  const absl::StatusOr<ModelPurpose> purpose = ReadPurpose(path);
  return std::make_shared<ModelVersion>(
      id, number, path,
      purpose.ok() ? std::make_optional(*purpose) : std::nullopt,
      metrics_.Model(id, absl::StrCat(number)));
}

ModelCatalog::Version ModelCatalog::Add(const std::string& id, int64_t number,
                                        const VersionPath& path) {
  Version version = Make(id, number, path);
  ShowState(*version);
  absl::MutexLock lock(&mu_);
  entries_[id].Put(version);
  return version;
}

void ModelCatalog::Serve(const Version& version,
                         std::shared_ptr<LoadedModel> loaded) {
  version->SetReady(std::move(loaded));
  ShowState(*version);
  // The replaced version, or null. It is declared before the lock, so that it
  // is destroyed after the mutex is unlocked.
  Version before;
  absl::MutexLock lock(&mu_);
  ModelEntry& entry = entries_[version->id()];
  before = entry.Find(version->number());
  if (before == version) return;
  entry.Put(version);
  if (before == nullptr) return;
  const auto model = before->Loaded();
  // AwaitFreed() waits for each model in draining_. Draining::listed is null
  // for the old model, because `version` has replaced the old version in the
  // catalog.
  if (model.ok()) draining_[model->get()] = {};
}

void ModelCatalog::Fail(const Version& version, absl::string_view reason) {
  const Version listed = Get(version->id(), version->number());
  if (listed != version && listed != nullptr) {
    listed->SetReloadFailed(reason);
    return;
  }
  version->SetUnavailable(reason);
  ShowState(*version);
}

ModelCatalog::Version ModelCatalog::Unserved(const ModelVersion& version,
                                             const std::string& reason) {
  // The pointer `unknown` does not own the metrics of unknown models. These
  // metrics live as long as metrics_.
  std::shared_ptr<observability::ModelMetrics> unknown(
      std::shared_ptr<void>(), &metrics_.UnknownModel());
  auto unserved = std::make_shared<ModelVersion>(
      version.id(), version.number(), version.path(), version.purpose(),
      std::move(unknown));
  unserved->SetUnavailable(reason);
  return unserved;
}

absl::StatusOr<ModelCatalog::Version> ModelCatalog::Unload(
    const std::string& id, int64_t number, const std::string& reason) {
  // `before` and `model` are declared before the lock, so that both are
  // destroyed after the mutex is unlocked.
  Version before;
  absl::StatusOr<std::shared_ptr<LoadedModel>> model;
  absl::MutexLock lock(&mu_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return NoModel(id);
  ModelEntry& entry = found->second;
  before = entry.Find(number);
  if (before == nullptr) return NoVersion(id, number, entry);
  const std::vector<std::string> labels = before->labels();
  if (!labels.empty()) {
    return server::VersionInUse(before->name(), labels.front());
  }
  Version listed;
  model = before->Loaded();
  if (model.ok()) {
    listed = std::make_shared<ModelVersion>(
        id, number, before->path(), before->purpose(), before->metrics());
    listed->SetUnloading();
    ShowState(*listed);
    draining_[model->get()] = {listed, reason};
  } else if (before->state() == ModelState::kUnloading) {
    for (auto& [address, draining] : draining_) {
      if (draining.listed == before) draining.reason = reason;
    }
    return before;
  } else if (!reason.empty()) {
    listed = Unserved(*before, reason);
  } else {
    entry.Remove(number);
    if (entry.versions().empty()) entries_.erase(found);
    return before;
  }
  entry.Put(listed);
  return listed;
}

void ModelCatalog::Freed(const LoadedModel* model) {
  // `draining` is declared before the lock, so that it is destroyed after the
  // mutex is unlocked.
  Draining draining;
  absl::MutexLock lock(&mu_);
  const auto found = draining_.find(model);
  if (found == draining_.end()) return;
  draining = std::move(found->second);
  draining_.erase(found);
  freed_.SignalAll();
  if (draining.listed == nullptr) return;
  const auto entry = entries_.find(draining.listed->id());
  const int64_t number = draining.listed->number();
  if (entry == entries_.end() ||
      entry->second.Find(number) != draining.listed) {
    return;  // The version was loaded again in the meantime.
  }
  if (!draining.reason.empty()) {
    entry->second.Put(Unserved(*draining.listed, draining.reason));
    return;
  }
  entry->second.Remove(number);
  if (entry->second.versions().empty()) entries_.erase(entry);
}

bool ModelCatalog::AwaitFreed(absl::Duration limit) {
  absl::MutexLock lock(&mu_);
  return freed_.Await(&mu_, limit, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return draining_.empty();
  });
}

void ModelCatalog::Clear() {
  // `entries` is declared before the lock, so that the entries are destroyed
  // after the mutex is unlocked.
  std::map<std::string, ModelEntry> entries;
  absl::MutexLock lock(&mu_);
  entries.swap(entries_);
}

}  // namespace sfmamba::repository
