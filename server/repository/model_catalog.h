#ifndef SFMAMBA_SERVER_REPOSITORY_MODEL_CATALOG_H_
#define SFMAMBA_SERVER_REPOSITORY_MODEL_CATALOG_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "model/config.h"
#include "server/observability/metrics.h"
#include "server/repository/model_entry.h"
#include "server/repository/model_version.h"
#include "server/threads/steady_cond_var.h"

namespace sfmamba::repository {

// The versions that can be found, by id and number, while they are loaded and
// unloaded. It never waits for either.
//
// Thread-safe.
class ModelCatalog {
 public:
  using Version = std::shared_ptr<ModelVersion>;

  // `metrics` outlives the catalog.
  explicit ModelCatalog(observability::Metrics* metrics) : metrics_(*metrics) {}

  // See ModelRepository.
  absl::StatusOr<Version> Find(absl::string_view name, absl::string_view field,
                               std::optional<model::VisionTask> task) const
      ABSL_LOCKS_EXCLUDED(mu_);
  std::vector<Version> List() const ABSL_LOCKS_EXCLUDED(mu_);
  bool IsServing(const std::string& id) const ABSL_LOCKS_EXCLUDED(mu_);
  // FAILED_PRECONDITION with reason TOO_MANY_LABELS beyond kMostLabels.
  absl::Status SetLabel(const std::string& id, const std::string& label,
                        std::optional<int64_t> version)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Null if there is no such version.
  Version Get(const std::string& id, int64_t number) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // Those of a model, by number.
  std::map<int64_t, Version> VersionsOf(const std::string& id) const
      ABSL_LOCKS_EXCLUDED(mu_);
  std::set<int64_t> LabelledOf(const std::string& id) const
      ABSL_LOCKS_EXCLUDED(mu_);
  void ClearLabels(const std::string& id) ABSL_LOCKS_EXCLUDED(mu_);

  // A new version, LOADING, in the list.
  Version Add(const std::string& id, int64_t number, const VersionPath& path)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Makes a new version, LOADING, that is not in the list yet.
  Version Make(const std::string& id, int64_t number,
               const VersionPath& path) const;
  // The version serves from now on, in place of the one with its number.
  void Serve(const Version& version, std::shared_ptr<LoadedModel> loaded)
      ABSL_LOCKS_EXCLUDED(mu_);
  // The version's load failed. If one with its number serves, that serves on.
  void Fail(const Version& version, absl::string_view reason)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Nobody finds the version's model from now on. It is UNLOADING in the list
  // until Freed() of its model; then, if `reason` is empty, it leaves the list,
  // or else it is UNAVAILABLE with it. Returns what is listed in its place, or
  // was if it left the list. NOT_FOUND with reason MODEL_NOT_FOUND, or
  // FAILED_PRECONDITION with reason VERSION_IN_USE if it has a label.
  absl::StatusOr<Version> Unload(const std::string& id, int64_t number,
                                 const std::string& reason)
      ABSL_LOCKS_EXCLUDED(mu_);
  void Freed(const LoadedModel* model) ABSL_LOCKS_EXCLUDED(mu_);
  // Until all models that were unloaded are freed; false after `limit`.
  bool AwaitFreed(absl::Duration limit) ABSL_LOCKS_EXCLUDED(mu_);
  // Forgets all versions.
  void Clear() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // A model that is being freed, and what is listed for it; null if another one
  // serves in its place.
  struct Draining {
    Version listed;
    std::string reason;
  };

  absl::StatusOr<Version> FindOnly(absl::string_view field,
                                   std::optional<model::VisionTask> task) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // A hint for a caller that asked for `id`: the closest other id, or all ids
  // if they are few.
  std::string OtherModels(absl::string_view id) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status NoModel(const std::string& id) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status NoVersion(const std::string& id, int64_t number,
                         const ModelEntry& entry) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // What stands for a version that is not served. It has no series.
  Version Unserved(const ModelVersion& version, const std::string& reason);

  observability::Metrics& metrics_;
  mutable absl::Mutex mu_;
  // By id; none is empty.
  std::map<std::string, ModelEntry> entries_ ABSL_GUARDED_BY(mu_);
  server::SteadyCondVar freed_;  // Signalled when draining_ loses a model.
  std::map<const LoadedModel*, Draining> draining_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_MODEL_CATALOG_H_
