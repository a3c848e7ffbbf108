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

// Loads, serves and unloads models. The versions of a model are in folders
// <id>/<version>/ of a repository, or in single folders that the operator has
// named. The folders may change while the server runs. A version exists if its
// folder has a config.textproto or a config.json in Hugging Face's layout. If
// config.textproto states the size and the sha256 of the weights, the weights
// must match them. If the folder has no config.json, config.textproto must
// state the size and the sha256. A folder that contains a version's files but
// has no valid name is skipped with a warning.
//
// <id>/policy.textproto selects the versions of a model to serve. The default
// is the highest version. Versions that have a label or that LoadModel() has
// loaded are served too.
//
// Scan() must be called once, and then LoadAll() once. All other methods are
// thread-safe and may be called at any time. All loads and unloads after
// LoadAll() run on the repository's own threads, a few models at a time.
// Requests never wait for a load or unload.
class ModelRepository {
 public:
  using CaptureFailed = ModelLoader::CaptureFailed;
  using Load = ModelLoader::Load;
  using Changed = std::function<void(const ModelVersion&)>;

  struct Options : ModelLoader::Options {
    // The repository's folder. Empty if there are only the folders in `models`.
    std::string directory;
    // Folders of single versions, by model id. Each folder is version 1 of its
    // model. Symbolic links in these folders may point to any target.
    std::map<std::string, std::string> models;
    bool explicit_control = false;  // Enables LoadModel() and UnloadModel().
    // The time between two reads of the folders. If infinite, the folders are
    // read only at startup.
    absl::Duration poll_period = absl::InfiniteDuration();
    // The ids of the models to load at startup if explicit_control is true. If
    // the list is empty, all models are loaded.
    std::vector<std::string> startup_models;
    // If true, and the memory is not sufficient to load a version, the model's
    // other versions are unloaded. Then the load is repeated.
    bool unload_first = false;
    // Each of the repository's low-priority threads calls this function once,
    // when the thread starts. These threads prepare models while other models
    // serve requests.
    std::function<void()> background_starts = [] {};
  };

  struct LoadRequest {
    // The version to load. If nullopt, all versions that the policy selects are
    // loaded.
    std::optional<int64_t> version;
    // Each field that is set here replaces the field of the same name in the
    // message `batching` of the version's config.textproto, until the next load
    // of the version. If nullopt, no field is replaced.
    std::optional<v1::Batching> batching;
    // If this returns true, the load soon ends with CANCELLED.
    std::function<bool()> cancelled = [] { return false; };
  };

  using Done = std::function<void(const absl::Status&)>;

  // `metrics` and `log` must outlive the repository.
  ModelRepository(Options options, Load load, observability::Metrics* metrics,
                  observability::Logger* log);
  // Waits until the running batches of all models have ended. Then frees the
  // models, except those that a request still owns.
  ~ModelRepository();

  // Finds the versions and lists them as LOADING. Returns NOT_FOUND if the
  // repository's folder cannot be read, if there are no models, or if
  // startup_models contains an unknown id. Returns INVALID_ARGUMENT if an id in
  // Options::models is also the id of a model in the repository's folder.
  absl::Status Scan();

  // Loads and warms up each version, one after another. Each version then
  // becomes READY or UNAVAILABLE, and `changed` is called. Returns the first
  // error with the version's name. `stop` is called before and during each
  // load. If it returns true, LoadAll() returns CANCELLED. The repository keeps
  // copies of both functions. Its threads also call them for loads and unloads
  // after LoadAll().
  absl::Status LoadAll(const Changed& changed,
                       const std::function<bool()>& stop);

  // Reads the folder of model `id` again and loads the versions to serve, which
  // ModelPlan::Wanted() returns. If the request contains a version, loads only
  // this version. The version is then served until UnloadModel() is called for
  // it. A READY version whose files have not changed is not loaded again unless
  // `request.batching` is set. Versions that are no longer to be served are
  // unloaded when the new ones are READY. Afterwards one of the repository's
  // threads calls `done` with the first error, or OK. After an error, the
  // previous versions keep serving. `done` may call the repository but must not
  // block.
  //
  // Possible errors:
  // - FAILED_PRECONDITION, MODEL_CONTROL_OFF: explicit_control is false.
  // - FAILED_PRECONDITION, LOAD_FAILED: a version did not load.
  // - NOT_FOUND, MODEL_NOT_FOUND: there is no such folder.
  // - RESOURCE_EXHAUSTED, QUEUE_FULL: too many calls wait.
  // - UNAVAILABLE, DRAINING: the repository is being destroyed.
  // If the call is refused immediately, `done` is called before LoadModel()
  // returns.
  void LoadModel(const std::string& id, LoadRequest request, Done done);

  // Stops serving a version. If `version` is nullopt, stops serving all
  // versions of the model and removes their labels. A version stays unloaded
  // until a call loads it. If a version is being loaded, its load ends with
  // CANCELLED. Admitted requests still get their answers. One of the
  // repository's threads calls `done` when new requests can no longer find the
  // version, or after an error. If the call is refused immediately, `done` is
  // called before UnloadModel() returns.
  //
  // Possible errors:
  // - FAILED_PRECONDITION, MODEL_CONTROL_OFF: explicit_control is false.
  // - FAILED_PRECONDITION, VERSION_IN_USE: `version` has a label.
  // - NOT_FOUND, MODEL_NOT_FOUND: there is no such model or version.
  // - RESOURCE_EXHAUSTED, QUEUE_FULL: too many calls wait.
  // - UNAVAILABLE, DRAINING: the repository is being destroyed.
  void UnloadModel(const std::string& id, std::optional<int64_t> version,
                   Done done);

  // Sets a label of the model, so that "models/{id}/labels/{label}" selects
  // `version`. Removes the label if `version` is empty. The label `stable`
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
  // "models/{id}/versions/{n}", "models/{id}/labels/{label}" or "". If `name`
  // contains an id but no version or label, ModelEntry::Default() selects the
  // version.
  //
  // `task` is used only if `name` is empty. If there is only one model, the
  // empty name selects this model, whatever its task is. Otherwise the empty
  // name selects the only model for `task` or, if there are several, the
  // default model for `task`. The caller must check the task of the result,
  // because it may differ from `task`.
  //
  // Returns NOT_FOUND with reason MODEL_NOT_FOUND if there is no such version.
  // Returns INVALID_ARGUMENT with reason INVALID_FIELD and field `field` if the
  // name is malformed, or if it is empty and selects no single model.
  absl::StatusOr<std::shared_ptr<ModelVersion>> Find(
      absl::string_view name, absl::string_view field,
      std::optional<model::VisionTask> task = std::nullopt) const {
    return catalog_.Find(name, field, task);
  }

  // Returns all known versions, whatever their state is. The versions are
  // sorted by id and number.
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
  // Returns a hint for an error about the unknown `id`. The hint names other
  // ids.
  std::string Others(const std::string& id) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void LoadNow(const std::string& id, const LoadRequest& request,
               server::Worker& background, const Done& done)
      ABSL_LOCKS_EXCLUDED(mu_);
  void UnloadNow(const std::string& id, std::optional<int64_t> version,
                 const Done& done) ABSL_LOCKS_EXCLUDED(mu_);
  // Reads the folders of all models. Then loads and unloads versions so that
  // the served versions match the folders. Returns the pause before the next
  // call of Poll().
  absl::Duration Poll() ABSL_LOCKS_EXCLUDED(mu_);
  // Loads and unloads versions of a model so that the served versions match the
  // folder.
  void PollModel(const std::string& id, ModelFolder folder)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Reads the state of a model's folder.
  ModelFolder LookAt(const std::string& id) const;
  void Found(const std::string& id, ModelFolder folder, bool at_once = false)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Logs each error of a model's policy, unless it was logged before.
  void LogPolicyFaults(const std::string& id, const absl::Status& policy)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void LogLeftOut(std::map<std::string, std::string> left_out);
  // Loads the wanted versions of a model, sets the model's labels, then unloads
  // unwanted versions. Returns the first error.
  absl::Status Update(const std::string& id, bool at_once, const LoadWay& way)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Loads one version. Unlocks mu_ while the files are read and the model is
  // prepared.
  absl::Status LoadVersion(const std::string& id, int64_t number,
                           const LoadWay& way)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Unloads all READY versions of the model to free memory. Then repeats a load
  // that failed for lack of memory. Unlocks mu_ during the load.
  absl::StatusOr<std::unique_ptr<LoadedModel>> LoadAlone(
      const ModelLoader::Job& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status UnloadVersion(const std::string& id, int64_t number,
                             const std::string& reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Unloads the versions of a model that are no longer wanted. Then removes
  // unwanted versions from the catalog if they are neither READY nor UNLOADING.
  // However, a version that UnloadModel() has unloaded stays in the catalog
  // while its folder exists.
  void UnloadUnwanted(const std::string& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Makes the pending label changes of a model, see ModelPlan::labels_to_set().
  // A change stays pending while the version is not READY.
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

  // Copies of the arguments of LoadAll(). Set before the first load.
  Changed changed_ = [](const ModelVersion&) {};
  std::function<bool()> stop_ = [] { return false; };

  // Each job holds this mutex, except while it reads the files of a version and
  // prepares the model.
  absl::Mutex mu_;
  std::map<std::string, ModelPlan> plans_ ABSL_GUARDED_BY(mu_);  // Keyed by id.
  // The policy errors that were logged last. The keys are the id of the model
  // and the name of the log field, such as "labels".
  std::map<std::string, std::map<std::string, std::string>> policy_faults_
      ABSL_GUARDED_BY(mu_);
  // True after LoadAll() has loaded the first versions.
  bool started_ ABSL_GUARDED_BY(mu_) = false;

  // The next two members prevent repeated log lines. Scan() uses the members
  // first. Afterwards only the thread of poller_ uses them.

  // The logged reasons why folders are not served. Keyed by path.
  std::map<std::string, std::string> left_out_;
  // True if the last read of the repository's folder failed. Only the first of
  // several consecutive failures is logged.
  bool folder_unreadable_ = false;

  mutable absl::Mutex unloads_mu_;
  // The UnloadModel() calls that wait, by model id. Each call has a version
  // number, or nullopt for all versions.
  std::multimap<std::string, std::optional<int64_t>> unloads_
      ABSL_GUARDED_BY(unloads_mu_);

  LoadLanes lanes_;  // Uses the members above.
  // Polls the folders and runs the first loads. This member is last, because
  // its thread uses all members above.
  server::Worker poller_;
};

// Converts a server's configuration to repository options.
ModelRepository::Options RepositoryOptions(
    const v1::ServerConfig& config,
    std::function<void(const absl::Status&)> device_failed =
        [](const absl::Status&) {},
    std::function<void()> background_starts = [] {});

// Estimates how many bytes of memory all models need while they serve. The
// estimate depends on the sizes of the models' files. Unreadable files count as
// 0.
int64_t MemoryOfModels(const v1::ServerConfig& config);

// Reads and verifies each version that the server would load at startup, and
// calls `use` for each of them. Stops at the first error of a read or of `use`.
// Returns this error with the version's name.
absl::Status ForEachServed(
    const v1::ServerConfig& config, observability::Logger* log,
    const std::function<absl::Status(const ModelVersion& version,
                                     const ModelDirectory& directory)>& use);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_MODEL_REPOSITORY_H_
