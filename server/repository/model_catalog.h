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

// Contains all known model versions by model id and version number. Callers can
// find versions while other versions are loaded and unloaded. Lookups never
// wait for a load or an unload.
//
// Thread-safe.
class ModelCatalog {
 public:
  using Version = std::shared_ptr<ModelVersion>;

  // `metrics` must outlive the catalog.
  explicit ModelCatalog(observability::Metrics* metrics) : metrics_(*metrics) {}

  // ModelRepository::Find() describes this method.
  absl::StatusOr<Version> Find(absl::string_view name, absl::string_view field,
                               std::optional<model::VisionTask> task) const
      ABSL_LOCKS_EXCLUDED(mu_);
  std::vector<Version> List() const ABSL_LOCKS_EXCLUDED(mu_);
  bool IsServing(const std::string& id) const ABSL_LOCKS_EXCLUDED(mu_);
  // Assigns the label `label` of the model `id` to `version`. If `version` is
  // nullopt, removes the label. ModelRepository::SetLabel() lists the errors.
  absl::Status SetLabel(const std::string& id, const std::string& label,
                        std::optional<int64_t> version)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the version, or null if there is no such version.
  Version Get(const std::string& id, int64_t number) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // Returns all versions of the model `id`, by version number.
  std::map<int64_t, Version> VersionsOf(const std::string& id) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the numbers of the versions that have a label.
  std::set<int64_t> LabelledOf(const std::string& id) const
      ABSL_LOCKS_EXCLUDED(mu_);
  void ClearLabels(const std::string& id) ABSL_LOCKS_EXCLUDED(mu_);

  // Creates a version with state LOADING, adds the version to the catalog and
  // returns the version. Replaces a version with the same number.
  Version Add(const std::string& id, int64_t number, const VersionPath& path)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Creates a version with state LOADING, but does not add it to the catalog.
  Version Make(const std::string& id, int64_t number,
               const VersionPath& path) const;
  // Makes the version READY with the model `loaded`. The catalog then contains
  // this version in place of an older one with the same number.
  void Serve(const Version& version, std::shared_ptr<LoadedModel> loaded)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Records that `version` did not load because of `reason`. The catalog may
  // contain an older object with the same version number, for example during a
  // reload. In this case, the older object stores the reason and keeps its
  // state. Otherwise `version` becomes UNAVAILABLE.
  void Fail(const Version& version, absl::string_view reason)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Unloads a version, so that new requests no longer find its model. The
  // version is then UNLOADING until Freed() is called for the model. Afterwards
  // the version is removed from the catalog if `reason` is empty. Otherwise the
  // version becomes UNAVAILABLE with this reason. If the version was neither
  // READY nor UNLOADING before the call, it is removed or becomes UNAVAILABLE
  // immediately.
  //
  // Returns the version's object in the catalog, or the removed object if the
  // version was removed immediately. Returns NOT_FOUND with reason
  // MODEL_NOT_FOUND if there is no such version. Returns FAILED_PRECONDITION
  // with reason VERSION_IN_USE if the version has a label.
  absl::StatusOr<Version> Unload(const std::string& id, int64_t number,
                                 const std::string& reason)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Records that `model` was freed. Removes the model's UNLOADING version from
  // the catalog or makes the version UNAVAILABLE, see Unload(). May be called
  // only after `model` was freed. The pointer is not dereferenced.
  void Freed(const LoadedModel* model) ABSL_LOCKS_EXCLUDED(mu_);
  // Waits until all unloaded models are freed. Returns false if `limit` passes
  // first.
  bool AwaitFreed(absl::Duration limit) ABSL_LOCKS_EXCLUDED(mu_);
  // Removes all versions.
  void Clear() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // An unloaded model that is not freed yet. `listed` is the version object
  // that the catalog lists for this model. `listed` is null if another model
  // already serves under the same version number.
  struct Draining {
    Version listed;
    std::string reason;
  };

  absl::StatusOr<Version> FindOnly(absl::string_view field,
                                   std::optional<model::VisionTask> task) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns a hint for an error about the unknown `id`. The hint names the most
  // similar id, or all ids if none is similar and there are few.
  std::string OtherModels(absl::string_view id) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status NoModel(const std::string& id) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status NoVersion(const std::string& id, int64_t number,
                         const ModelEntry& entry) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns a new ModelVersion with the name of `version` and the state
  // UNAVAILABLE. The new object has no metrics of its own and uses the metrics
  // of unknown models.
  Version Unserved(const ModelVersion& version, const std::string& reason);

  observability::Metrics& metrics_;
  mutable absl::Mutex mu_;
  // The models by id. Each model has at least one version.
  std::map<std::string, ModelEntry> entries_ ABSL_GUARDED_BY(mu_);
  // Signalled when a model is removed from draining_.
  server::SteadyCondVar freed_;
  std::map<const LoadedModel*, Draining> draining_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_MODEL_CATALOG_H_
