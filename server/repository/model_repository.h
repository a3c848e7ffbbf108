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
#include "model/config.h"
#include "server/observability/log.h"
#include "server/observability/metrics.h"
#include "server/repository/load_lanes.h"
#include "server/repository/model_catalog.h"
#include "server/repository/model_loader.h"
#include "server/repository/model_plan.h"
#include "server/repository/model_version.h"
#include "server/repository/reaper.h"
#include "server/threads/worker.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::repository {

// Loads, serves and unloads models. The versions are in folders <id>/<version>/
// of a repository, or in single folders that the operator has named. The
// folders may change while the server runs. A version exists if its folder has
// a config.textproto or a config.json in Hugging Face's layout. Size and sha256
// of the weights must match config.textproto. A folder that contains a
// version's files but has no valid name is skipped with a warning.
//
// <id>/policy.textproto selects the versions of a model to serve. The default
// is the highest version. Versions that have a label or that a call has loaded
// are served too.
//
// Scan() must be called once, and then LoadAll() once. All other methods are
// thread-safe and may be called at any time. Later loads and unloads run on the
// repository's own threads, a few models at a time. Requests never wait for a
// load or unload.
class ModelRepository {
 public:
  using CaptureFailed = ModelLoader::CaptureFailed;
  using Load = ModelLoader::Load;
  using Changed = std::function<void(const ModelVersion&)>;

  struct Options : ModelLoader::Options {
    std::string directory;  // If empty, there is no folder.
    // Folders of single versions, by model id. Each folder is version 1 of its
    // model. Links in these folders may lead anywhere.
    std::map<std::string, std::string> models;
    bool explicit_control = false;  // Enables LoadModel() and UnloadModel().
    // If infinite, the folders are read only at startup.
    absl::Duration poll_period = absl::InfiniteDuration();
    // If explicit_control is true, the ids to load at startup. Empty means all.
    std::vector<std::string> startup_models;
    // If true, and a new version does not fit into memory beside the model's
    // other versions, the other versions are unloaded first.
    bool unload_first = false;
    // Called first on each low-priority thread. These threads prepare models
    // while other models serve.
    std::function<void()> background_starts = [] {};
  };

  struct LoadRequest {
    // If empty, all versions that the policy selects are loaded.
    std::optional<int64_t> version;
    // The fields that are set replace the fields in the version's
    // config.textproto until the next load of the version.
    std::optional<v1::Batching> batching;
    // If this returns true, the load soon ends with CANCELLED.
    std::function<bool()> cancelled = [] { return false; };
  };

  using Done = std::function<void(const absl::Status&)>;

  // `metrics` and `log` must outlive the repository.
  ModelRepository(Options options, Load load, observability::Metrics* metrics,
                  observability::Logger* log);
  // Waits for the executors' running batches. Then frees the models that have
  // no other owner.
  ~ModelRepository();

  // Finds the versions and lists them as LOADING. Returns NOT_FOUND if the
  // folder cannot be read or contains no model. Returns INVALID_ARGUMENT if a
  // name is not a valid id or occurs twice.
  absl::Status Scan();

  // Loads and warms up each version, one after another. Each version then
  // becomes READY or UNAVAILABLE, and `changed` is called. Returns the first
  // error with the version's name. `stop` is called before and during each
  // load. If it returns true, LoadAll() returns CANCELLED. Later loads and
  // unloads call both functions too, on the repository's own threads, during
  // the repository's lifetime.
  absl::Status LoadAll(const Changed& changed,
                       const std::function<bool()>& stop);

  // Reads the folder of model `id` again and loads the wanted versions. If the
  // request contains a version, loads this version, which then stays wanted
  // until it is unloaded. A READY version whose files have not changed is not
  // loaded again unless `request.batching` is set. Unwanted versions are
  // unloaded when the new ones are READY. Afterwards one of the repository's
  // threads calls `done` with the first error, or OK. After an error, the
  // previous versions keep serving. `done` may call the repository but must not
  // block.
  //
  // Possible errors:
  // - FAILED_PRECONDITION, MODEL_CONTROL_OFF: explicit_control is false.
  // - NOT_FOUND, MODEL_NOT_FOUND: there is no such folder.
  // - RESOURCE_EXHAUSTED, QUEUE_FULL: too many calls wait.
  // - UNAVAILABLE, DRAINING: the repository is being destroyed.
  // If the call is refused immediately, `done` is called before LoadModel()
  // returns.
  void LoadModel(const std::string& id, LoadRequest request, Done done);

  // Stops serving a version, or all versions of the model with their labels.
  // The version stays unloaded until a call loads it. If the version is being
  // loaded, its load ends with CANCELLED. Admitted requests still get their
  // answers. `done` is called when new requests can no longer find the version.
  // LoadModel() describes the thread of `done` and the errors. If a single
  // version with a label is unloaded, the error is FAILED_PRECONDITION with
  // reason VERSION_IN_USE.
  void UnloadModel(const std::string& id, std::optional<int64_t> version,
                   Done done);

  // Sets a label of the model, so that "models/{id}/labels/{label}" selects
  // this version. Removes the label if `version` is empty. The label `stable`
  // also makes the plain name "{id}" select the version. Labelled versions are
  // served regardless of the policy.
  //
  // Possible errors:
  // - INVALID_ARGUMENT, INVALID_FIELD, field "label": the label is malformed.
  // - NOT_FOUND, MODEL_NOT_FOUND: there is no such version.
  // - FAILED_PRECONDITION, TOO_MANY_LABELS: the model has kMostLabels labels.
  // - UNAVAILABLE, MODEL_NOT_READY: the version is not READY.
  absl::Status SetLabel(const std::string& id, const std::string& label,
                        std::optional<int64_t> version) {
    return catalog_.SetLabel(id, label, version);
  }

  // Returns true if any version of `id` is READY.
  bool IsServing(const std::string& id) const { return catalog_.IsServing(id); }

  // Returns the version that `name` selects. `name` is "{id}", "models/{id}",
  // "models/{id}/versions/{n}", "models/{id}/labels/{label}" or "". If there is
  // only one model, the empty name selects this model. Otherwise the empty name
  // selects the only model for `task` or, if there are several, the default
  // model for `task`. If `name` contains no version or label,
  // ModelEntry::Default() selects the version. If `name` contains an id, the
  // model may have another task than `task`. Returns NOT_FOUND with reason
  // MODEL_NOT_FOUND, or INVALID_ARGUMENT with reason INVALID_FIELD and field
  // `field`.
  absl::StatusOr<std::shared_ptr<ModelVersion>> Find(
      absl::string_view name, absl::string_view field,
      std::optional<model::VisionTask> task = std::nullopt) const {
    return catalog_.Find(name, field, task);
  }

  // Returns all versions that are served or were requested, in all states. The
  // versions are sorted by id and number.
  std::vector<std::shared_ptr<ModelVersion>> List() const {
    return catalog_.List();
  }

 private:
  using Version = std::shared_ptr<ModelVersion>;

  // ---- Called by the repository's threads, one at a time for each model ----

  // The options of a load.
  struct LoadWay {
    server::Worker* background = nullptr;  // See ModelLoader::Job.
    std::optional<v1::Batching> batching;  // See LoadRequest.
    std::function<bool()> cancelled = [] { return false; };
  };

  // Waits until LoadAll() has loaded the first versions. Returns false if the
  // repository is being destroyed.
  bool AwaitStart() ABSL_LOCKS_EXCLUDED(mu_);
  // Loads the versions to serve at startup.
  absl::Status LoadFirst() ABSL_LOCKS_EXCLUDED(mu_);
  // Returns a hint for an error about an unknown id.
  std::string Others(const std::string& id) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void LoadNow(const std::string& id, const LoadRequest& request,
               server::Worker& background, const Done& done)
      ABSL_LOCKS_EXCLUDED(mu_);
  void UnloadNow(const std::string& id, std::optional<int64_t> version,
                 const Done& done) ABSL_LOCKS_EXCLUDED(mu_);
  // Reads the folders and applies their changes. Returns the pause before the
  // next call.
  absl::Duration Poll() ABSL_LOCKS_EXCLUDED(mu_);
  // Loads and unloads versions of a model to match its folder.
  void PollModel(const std::string& id, ModelFolder folder)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Reads the state of a model's folder.
  ModelFolder LookAt(const std::string& id) const;
  void Found(const std::string& id, ModelFolder folder, bool at_once = false)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Logs new errors of a model's policy.
  void LogPolicyFaults(const std::string& id, const absl::Status& policy)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void LogLeftOut(std::map<std::string, std::string> left_out);
  // Loads the wanted versions of a model, sets its labels, then unloads
  // unwanted versions.
  absl::Status Update(const std::string& id, bool at_once, const LoadWay& way)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Unlocks mu_ while the version is read and prepared.
  absl::Status LoadVersion(const std::string& id, int64_t number,
                           const LoadWay& way)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Unloads the model's other versions and repeats a load that failed for lack
  // of memory. Unlocks mu_ meanwhile.
  absl::StatusOr<std::unique_ptr<LoadedModel>> LoadAlone(
      const ModelLoader::Job& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status UnloadVersion(const std::string& id, int64_t number,
                             const std::string& reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Unloads unwanted versions of a model. Removes failed versions whose folder
  // no longer exists.
  void UnloadUnwanted(const std::string& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Sets the labels of the policy whose versions are READY.
  void SetLabels(const std::string& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool Stopping() const;
  // Returns true if an UnloadModel() call for the version is waiting.
  bool UnloadWaits(const std::string& id, int64_t number) const
      ABSL_LOCKS_EXCLUDED(unloads_mu_);

  // Returns the error of a LoadModel() or UnloadModel() call that cannot be
  // queued.
  absl::Status Refusal() const;

  const Options options_;
  observability::Logger& log_;
  ModelLoader loader_;
  ModelCatalog catalog_;
  Reaper reaper_;  // Uses the catalog.

  // Set by LoadAll() before the first load.
  Changed changed_ = [](const ModelVersion&) {};
  std::function<bool()> stop_ = [] { return false; };

  // Locked by each job, except while a version is read and prepared.
  absl::Mutex mu_;
  std::map<std::string, ModelPlan> plans_ ABSL_GUARDED_BY(mu_);  // Keyed by id.
  // Policy errors that were logged, by id and field.
  std::map<std::string, std::map<std::string, std::string>> policy_faults_
      ABSL_GUARDED_BY(mu_);
  // True when LoadAll() has finished.
  bool started_ ABSL_GUARDED_BY(mu_) = false;

  // The next two members prevent repeated warnings. Scan() uses these members
  // first, and afterwards only the poller's thread does.
  std::map<std::string, std::string> left_out_;  // Logged reasons, by path.
  bool folder_unreadable_ = false;               // True if logged.

  mutable absl::Mutex unloads_mu_;
  // The calls that wait to unload a model, by id. Each call has a version
  // number, or nullopt for all versions.
  std::multimap<std::string, std::optional<int64_t>> unloads_
      ABSL_GUARDED_BY(unloads_mu_);

  LoadLanes lanes_;  // Uses the members above.
  // Last, because it uses all members above. It also runs the first loads.
  server::Worker poller_;
};

// Converts a server's configuration to repository options.
ModelRepository::Options RepositoryOptions(
    const v1::ServerConfig& config,
    std::function<void(const absl::Status&)> device_failed =
        [](const absl::Status&) {},
    std::function<void()> background_starts = [] {});

// Estimates the total bytes that the server's models need after startup from
// the sizes of their files. Unreadable files count as 0.
int64_t MemoryOfModels(const v1::ServerConfig& config);

// Reads and verifies each version that the server would load at startup. Calls
// `use` with each version until a call fails. Errors contain the version's
// name.
absl::Status ForEachServed(
    const v1::ServerConfig& config, observability::Logger* log,
    const std::function<absl::Status(const ModelVersion& version,
                                     const ModelDirectory& directory)>& use);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_MODEL_REPOSITORY_H_
