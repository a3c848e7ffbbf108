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

// "classification", "detection" or "segmentation".
absl::string_view TaskName(model::VisionTask task);

// "FP32", "BF16", "FP16" or "INT8".
absl::string_view PrecisionName(model::Precision precision);

// What a version that is READY runs and says of itself. Immutable, apart from
// its executor, which is thread-safe.
struct LoadedModel {
  ModelDirectory directory;
  absl::Time load_time;  // By the wall clock.
  model::Precision precision = model::Precision::kFloat32;
  std::unique_ptr<batching::Executor> executor;
  std::string times_key;       // The key of its batches' times in KnownTimes.
  RunMemory::Hold run_memory;  // What its batches take.
};

// One version of a model from its load to its unload. Thread-safe.
//
// A version that is loaded again, or is unloaded, gets another object of the
// same name in the repository's list. Whoever found this one before may still
// start requests with it, and the model is freed when the last of them has
// released it: no request fails because a version was swapped meanwhile.
class ModelVersion {
 public:
  // It is LOADING. `path`: its folder.
  // `purpose`: unknown if its configuration cannot be read.
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
  std::string name() const;         // "models/{id}/versions/{n}".
  std::string health_name() const;  // "models/{id}".
  // This version's metrics; after its unload those of unknown models, because
  // its own series are gone.
  const std::shared_ptr<observability::ModelMetrics>& metrics() const {
    return metrics_;
  }
  // Whether metrics() are its own.
  bool has_series() const { return metrics_.use_count() > 0; }

  observability::ModelState state() const ABSL_LOCKS_EXCLUDED(mu_);
  // Why it is UNAVAILABLE, or why it could not be loaded again while it is
  // READY; else empty. Names no path.
  std::string state_reason() const ABSL_LOCKS_EXCLUDED(mu_);
  // By name, as SetLabel() set them.
  std::vector<std::string> labels() const ABSL_LOCKS_EXCLUDED(mu_);
  // UNAVAILABLE with reason MODEL_NOT_READY unless it is READY or was when it
  // was found. Whoever holds it keeps the model alive.
  absl::StatusOr<std::shared_ptr<LoadedModel>> Loaded() const
      ABSL_LOCKS_EXCLUDED(mu_);

  // Called by the repository.
  void SetReady(std::shared_ptr<LoadedModel> loaded) ABSL_LOCKS_EXCLUDED(mu_);
  void SetUnavailable(absl::string_view reason) ABSL_LOCKS_EXCLUDED(mu_);
  void SetUnloading() ABSL_LOCKS_EXCLUDED(mu_);
  void SetLabels(std::vector<std::string> labels) ABSL_LOCKS_EXCLUDED(mu_);
  // A later load of the version failed; this one serves on.
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
