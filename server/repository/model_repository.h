#ifndef SFMAMBA_SERVER_REPOSITORY_MODEL_REPOSITORY_H_
#define SFMAMBA_SERVER_REPOSITORY_MODEL_REPOSITORY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "model/vision_model.h"
#include "server/base/recent_mean.h"
#include "server/batching/batch_profile_file.h"
#include "server/batching/devices.h"
#include "server/batching/executor.h"
#include "server/observability/log.h"
#include "server/observability/metrics.h"
#include "server/repository/batch_times.h"
#include "server/repository/model_directory.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::repository {

// "classification", "detection" or "segmentation".
absl::string_view TaskName(model::VisionTask task);

// What a version that is READY runs and says of itself. Immutable but for its
// executor, which is thread-safe.
struct LoadedModel {
  ModelDirectory directory;
  absl::Time load_time;  // Of the wall clock.
  std::unique_ptr<batching::Executor> executor;
  batching::BatchProfileKey profile_key;
  // From the end of an image's batch until its answer was encoded.
  server::RecentMean answer_time;
};

// One version of a model through its life. Thread-safe.
class ModelVersion {
 public:
  // `path`: its folder.
  // `task`: what it is for; unknown if its configuration cannot be read.
  ModelVersion(std::string id, int64_t number, std::string path,
               std::optional<model::VisionTask> task,
               std::shared_ptr<observability::ModelMetrics> metrics);

  const std::string& id() const { return id_; }
  int64_t number() const { return number_; }
  const std::string& path() const { return path_; }
  std::optional<model::VisionTask> task() const { return task_; }
  std::string name() const;         // "models/{id}/versions/{n}".
  std::string health_name() const;  // "models/{id}".
  const std::shared_ptr<observability::ModelMetrics>& metrics() const {
    return metrics_;
  }

  observability::ModelState state() const ABSL_LOCKS_EXCLUDED(mu_);
  // Why it is UNAVAILABLE; else empty. Names no path.
  std::string state_reason() const ABSL_LOCKS_EXCLUDED(mu_);
  // UNAVAILABLE with reason MODEL_NOT_READY unless READY. Whoever holds it
  // keeps the model alive.
  absl::StatusOr<std::shared_ptr<LoadedModel>> Loaded() const
      ABSL_LOCKS_EXCLUDED(mu_);

  void SetReady(std::shared_ptr<LoadedModel> loaded) ABSL_LOCKS_EXCLUDED(mu_);
  void SetUnavailable(absl::string_view reason) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const std::string id_;
  const int64_t number_;
  const std::string path_;
  const std::optional<model::VisionTask> task_;
  const std::shared_ptr<observability::ModelMetrics> metrics_;

  mutable absl::Mutex mu_;
  observability::ModelState state_ ABSL_GUARDED_BY(mu_) =
      observability::ModelState::kLoading;
  std::string reason_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<LoadedModel> loaded_ ABSL_GUARDED_BY(mu_);
};

// The models of a folder <id>/<version>/, or a single version's folder; of each
// id the highest version that is published (has its config.textproto). Names
// that are not ids or positive decimals without leading zero are ignored.
//
// Scan() once, then LoadAll() once; the rest is thread-safe meanwhile.
class ModelRepository {
 public:
  // Loads a model, which calls `capture_failed` as ModelOptions says.
  using CaptureFailed = std::function<void(const absl::Status&)>;
  using Load =
      std::function<absl::StatusOr<std::unique_ptr<model::VisionModel>>(
          const ModelDirectory& directory, CaptureFailed capture_failed)>;

  struct Options {
    std::string directory;  // Empty: none.
    std::string
        model_path;  // With model_name: one version's folder, version 1.
    std::string model_name;
    bool random_init = false;  // Of versions without weights.
    // Both: see Executor::Options.
    std::function<void(const absl::Status&)> device_failed =
        [](const absl::Status&) {};
    absl::Duration drain_timeout = absl::InfiniteDuration();
    double client_share = 1;  // See BatchOptions.
    absl::Duration profile_budget;
    std::string profile_dir;  // See ServerConfig. Empty: none.
    std::string build;        // Of the program: profiles of others are ignored.
  };

  // `metrics` and `log` outlive the repository.
  ModelRepository(Options options, Load load, observability::Metrics* metrics,
                  observability::Logger* log);
  // Waits for the executors' running batches, then frees the models that nobody
  // holds.
  ~ModelRepository();

  // Finds the versions; from now on they are known, and LOADING. NOT_FOUND if
  // the folder cannot be read or holds no model; INVALID_ARGUMENT if a name is
  // not an id or is given twice.
  absl::Status Scan() ABSL_LOCKS_EXCLUDED(mu_);

  // Reads, verifies, loads and warms each version in turn; it is then READY or
  // UNAVAILABLE, and `changed` is told. The first error, with the version's
  // name; CANCELLED if `stop` says so, asked before each, and while it is
  // prepared and its batches are measured.
  absl::Status LoadAll(const std::function<void(const ModelVersion&)>& changed,
                       const std::function<bool()>& stop);

  // The version that `name` means: "{id}", "models/{id}",
  // "models/{id}/versions/{n}", or "": the only model for `task`, or the only
  // one at all. NOT_FOUND with reason MODEL_NOT_FOUND, or INVALID_ARGUMENT with
  // reason INVALID_FIELD and field `field`. A named model may be for another
  // task.
  absl::StatusOr<std::shared_ptr<ModelVersion>> Find(
      absl::string_view name, absl::string_view field,
      std::optional<model::VisionTask> task = std::nullopt) const
      ABSL_LOCKS_EXCLUDED(mu_);

  // All versions by ascending id.
  std::vector<std::shared_ptr<ModelVersion>> List() const
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::Status Add(const std::string& id, int64_t number,
                   const std::string& path) ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::shared_ptr<ModelVersion>> FindOnly(
      absl::string_view field, std::optional<model::VisionTask> task) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<std::shared_ptr<LoadedModel>> LoadOne(
      const ModelVersion& version, const std::function<bool()>& stop) const;
  // Writes what has been learnt of the times of a model's batches.
  void WriteTimes(const ModelVersion& version) const;
  // Logs and counts the graphs that a version cannot record.
  CaptureFailed TellOfCaptures(const ModelVersion& version) const;

  const Options options_;
  const Load load_;
  observability::Metrics& metrics_;
  observability::Logger& log_;
  const BatchTimes times_;
  // The models that somebody holds may outlive the repository.
  const std::shared_ptr<batching::Devices> devices_ =
      std::make_shared<batching::Devices>();

  mutable absl::Mutex mu_;
  std::map<std::string, std::shared_ptr<ModelVersion>> versions_
      ABSL_GUARDED_BY(mu_);  // By id.
};

// The models of a server of this config.
ModelRepository::Options RepositoryOptions(
    const v1::ServerConfig& config,
    std::function<void(const absl::Status&)> device_failed =
        [](const absl::Status&) {},
    std::string build = "");

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_MODEL_REPOSITORY_H_
