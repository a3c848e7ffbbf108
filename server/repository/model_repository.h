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
#include "server/batching/devices.h"
#include "server/observability/log.h"
#include "server/observability/metrics.h"
#include "server/repository/batch_times.h"
#include "server/repository/model_directory.h"
#include "server/repository/model_version.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::repository {

// The models of a folder <id>/<version>/, or a single version's folder, which
// may change while they serve. Names that are not ids or positive decimals
// without leading zero are ignored. A version is there once its folder has a
// config.textproto, whose size and sha256 of the weights must be true.
// <id>/policy.textproto says which versions of a model are served; without it
// the highest one is. A version that has a label, or that a call has loaded, is
// served too.
//
// Scan() once, then LoadAll() once; the rest is thread-safe meanwhile. What
// loads and unloads later is one thread of the repository, a load after the
// other; requests never wait for it.
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
    bool explicit_control = false;  // LoadModel() and UnloadModel() are served.
    // Infinite: the folder is read at the start only.
    absl::Duration poll_period = absl::InfiniteDuration();
    // With explicit_control: the ids to load at the start; empty: all.
    std::vector<std::string> startup_models;
    // A version that does not fit beside the others of its model replaces them.
    bool unload_first = false;
  };

  // What a name is looked up for.
  enum class Use {
    kDescribe,
    kPredict,  // The label `canary` gets its share.
  };

  struct LoadRequest {
    std::optional<int64_t> version;  // None: those that the policy wants.
    // In place of those in the version's config.textproto, until it is loaded
    // again: the fields that are set.
    std::optional<v1::Batching> batching;
  };

  using Done = std::function<void(const absl::Status&)>;

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
  // prepared and its batches are measured. Both are called for later loads and
  // unloads too, on the repository's own thread, as long as this lives.
  absl::Status LoadAll(const std::function<void(const ModelVersion&)>& changed,
                       const std::function<bool()>& stop);

  // Reads the folder of model `id` again and loads what is wanted of it, or the
  // version that is asked for, which is wanted until it is unloaded. A version
  // that is READY and whose files have not changed stays as it is, unless
  // `request.batching` is set. The versions that are no longer wanted are
  // unloaded once the new ones are READY. Then `done` is called, on the
  // repository's own thread, with the first error, if any; what served before
  // serves on then. It may call this, but must not block.
  //
  // FAILED_PRECONDITION with reason MODEL_CONTROL_OFF without explicit_control,
  // NOT_FOUND with reason MODEL_NOT_FOUND if there is no such folder,
  // RESOURCE_EXHAUSTED with reason QUEUE_FULL if many calls wait, UNAVAILABLE
  // with reason DRAINING if the repository is being destroyed. What is refused
  // at once is told to `done` before this returns.
  void LoadModel(const std::string& id, LoadRequest request, Done done)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Stops to serve a version, or all of the model and its labels with them. It
  // stays so until a call loads it. Requests that were admitted are answered.
  // `done` is called when no new request finds it, as above.
  //
  // Errors as above; FAILED_PRECONDITION with reason VERSION_IN_USE if the one
  // version has a label.
  void UnloadModel(const std::string& id, std::optional<int64_t> version,
                   Done done) ABSL_LOCKS_EXCLUDED(mu_);

  // From now on "models/{id}/labels/{label}" is this version; none: the label
  // is removed. With the label `stable` the version is what "{id}" means. A
  // version with a label is served whatever the policy is.
  //
  // INVALID_ARGUMENT with reason INVALID_FIELD and field "label",
  // NOT_FOUND with reason MODEL_NOT_FOUND, UNAVAILABLE with reason
  // MODEL_NOT_READY if the version is not READY.
  absl::Status SetLabel(const std::string& id, const std::string& label,
                        std::optional<int64_t> version)
      ABSL_LOCKS_EXCLUDED(mu_);

  // From now on `percent` of the requests that name a model without a version
  // go to its label `canary`, as evenly as that can be done, while that version
  // is READY. INVALID_ARGUMENT with field "percent" or NOT_FOUND.
  absl::Status SetCanaryShare(const std::string& id, int percent)
      ABSL_LOCKS_EXCLUDED(mu_);
  // The same, read. 0 if there is no such model.
  int CanaryShare(const std::string& id) const ABSL_LOCKS_EXCLUDED(mu_);

  // Whether any version of `id` is READY.
  bool IsServing(const std::string& id) const ABSL_LOCKS_EXCLUDED(mu_);

  // The version that `name` means: "{id}", "models/{id}",
  // "models/{id}/versions/{n}", "models/{id}/labels/{label}", or "": the only
  // model for `task`, or the only one at all. Without a version it is the
  // canary's share if the name is looked up for a prediction, else the version
  // with the label `stable`, else the highest that is READY, else the highest.
  // NOT_FOUND with reason MODEL_NOT_FOUND, or INVALID_ARGUMENT with reason
  // INVALID_FIELD and field `field`. A named model may be for another task.
  absl::StatusOr<std::shared_ptr<ModelVersion>> Find(
      absl::string_view name, absl::string_view field,
      std::optional<model::VisionTask> task = std::nullopt,
      Use use = Use::kDescribe) const ABSL_LOCKS_EXCLUDED(mu_);

  // The versions that are served, or were asked for, in all states, by
  // ascending id and number.
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
