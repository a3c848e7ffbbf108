#ifndef SFMAMBA_SERVER_REPOSITORY_MODEL_VERSION_H_
#define SFMAMBA_SERVER_REPOSITORY_MODEL_VERSION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "model/config.h"
#include "server/batching/executor.h"
#include "server/observability/metrics.h"
#include "server/repository/model_directory.h"
#include "server/repository/run_memory.h"

namespace sfmamba::repository {

// Returns "classification", "detection" or "segmentation".
absl::string_view TaskName(model::VisionTask task);

// Returns "FP32", "BF16", "FP16" or "INT8".
absl::string_view PrecisionName(model::Precision precision);

// The model and the metadata of a READY version. Immutable except for
// `executor`, which is thread-safe.
struct LoadedModel {
  ModelDirectory directory;
  absl::Time load_time;  // The end of the load, measured with absl::Now().
  model::Precision precision = model::Precision::kFloat32;
  std::unique_ptr<batching::Executor> executor;
  std::string times_key;  // The key of the batch times in KnownTimes.
  // The registration of the memory that the model's batches need. RunMemory
  // counts this memory until the model is freed.
  RunMemory::Hold run_memory;
};

// One version of a model from its load to its unload. Thread-safe.
//
// When a version is reloaded or unloaded, a new object with the same name
// replaces the old object in the repository's catalog. Requests that have found
// the old object may still run. The model is freed when the last of these
// requests releases it. Replacing a version therefore never fails a request.
class ModelVersion {
 public:
  // Creates a version with state LOADING. `path` is the version's folder.
  // `purpose` is nullopt if the configuration cannot be read.
  ModelVersion(std::string id, int64_t number, VersionPath path,
               std::optional<ModelPurpose> purpose,
               std::shared_ptr<observability::ModelMetrics> metrics);

  const std::string& id() const { return id_; }
  int64_t number() const { return number_; }
  const VersionPath& path() const { return path_; }
  const std::optional<ModelPurpose>& purpose() const { return purpose_; }
  std::optional<model::VisionTask> task() const {
    return purpose_.has_value() ? std::make_optional(purpose_->task)
                                : std::nullopt;
  }
  bool is_default() const {
    return purpose_.has_value() && purpose_->is_default;
  }
  std::string name() const;         // Returns "models/{id}/versions/{n}".
  std::string health_name() const;  // Returns "models/{id}".
  // Returns the version's metrics. An unloaded version has no metrics of its
  // own. It returns the shared metrics that count requests for unknown models,
  // see observability::Metrics::UnknownModel().
  const std::shared_ptr<observability::ModelMetrics>& metrics() const {
    return metrics_;
  }
  // Returns true if the version has its own metrics and therefore its own time
  // series in Prometheus. Returns false if metrics() returns the shared metrics
  // for unknown models. In this case, metrics_ is a non-owning pointer, whose
  // use_count() is 0.
  bool has_series() const { return metrics_.use_count() > 0; }

  observability::ModelState state() const ABSL_LOCKS_EXCLUDED(mu_);
  // If the version is UNAVAILABLE, returns the reason. If the version is READY
  // and its last reload has failed, returns the reason for the failure.
  // Otherwise returns "". The text contains no path.
  std::string state_reason() const ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the labels that SetLabels() has set, sorted by name.
  std::vector<std::string> labels() const ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the model. The model stays alive while the caller holds the
  // pointer. Returns UNAVAILABLE with reason MODEL_NOT_READY if this object
  // never became READY.
  absl::StatusOr<std::shared_ptr<LoadedModel>> Loaded() const
      ABSL_LOCKS_EXCLUDED(mu_);

  // The following functions change the state. Only the repository calls them.
  void SetReady(std::shared_ptr<LoadedModel> loaded) ABSL_LOCKS_EXCLUDED(mu_);
  void SetUnavailable(absl::string_view reason) ABSL_LOCKS_EXCLUDED(mu_);
  void SetUnloading() ABSL_LOCKS_EXCLUDED(mu_);
  void SetLabels(std::vector<std::string> labels) ABSL_LOCKS_EXCLUDED(mu_);
  // Records that a reload of this version failed. This object, which holds the
  // model from before the reload, keeps serving.
  void SetReloadFailed(absl::string_view reason) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const std::string id_;
  const int64_t number_;
  const VersionPath path_;
  const std::optional<ModelPurpose> purpose_;
  const std::shared_ptr<observability::ModelMetrics> metrics_;

  mutable absl::Mutex mu_;
  observability::ModelState state_ ABSL_GUARDED_BY(mu_) =
      observability::ModelState::kLoading;
  std::string reason_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> labels_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<LoadedModel> loaded_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_MODEL_VERSION_H_
