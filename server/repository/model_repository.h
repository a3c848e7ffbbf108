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

// The models of a folder <id>/<version>/, and single versions' folders, which
// may change while they serve. What has a version's files but no usable name
// is left out with a warning. A version is there once its folder has a
// config.textproto, whose size and sha256 of the weights must be true, or a
// config.json as Hugging Face lays it out.
// <id>/policy.textproto says which versions of a model are served; without it
// the highest one is. A version that has a label, or that a call has loaded, is
// served too.
//
// Scan() once, then LoadAll() once; the rest is thread-safe meanwhile. Threads
// of the repository load and unload later, a few models at a time; requests
// never wait for them.
class ModelRepository {
 public:
  using CaptureFailed = ModelLoader::CaptureFailed;
  using Load = ModelLoader::Load;
  using Changed = std::function<void(const ModelVersion&)>;

  struct Options : ModelLoader::Options {
    std::string directory;  // Empty: none.
    // Folders of single versions, each version 1 of a model, by its id. Links
    // in them are followed wherever they lead.
    std::map<std::string, std::string> models;
    bool explicit_control = false;  // LoadModel() and UnloadModel() are served.
    // Infinite: the folder is read at the start only.
    absl::Duration poll_period = absl::InfiniteDuration();
    // With explicit_control: the ids to load at the start; empty: all.
    std::vector<std::string> startup_models;
    // A version that does not fit beside the others of its model replaces them.
    bool unload_first = false;
    // Called first of all on each thread of low priority, which prepares models
    // while others serve.
    std::function<void()> background_starts = [] {};
  };

  struct LoadRequest {
    std::optional<int64_t> version;  // None: those that the policy wants.
    // In place of those in the version's config.textproto, until it is loaded
    // again: the fields that are set.
    std::optional<v1::Batching> batching;
    // The load ends with CANCELLED soon after this returns true.
    std::function<bool()> cancelled = [] { return false; };
  };

  using Done = std::function<void(const absl::Status&)>;

  // `metrics` and `log` outlive the repository.
  ModelRepository(Options options, Load load, observability::Metrics* metrics,
                  observability::Logger* log);
  // Waits for the executors' running batches, then frees the models that have
  // no other holder.
  ~ModelRepository();

  // Finds the versions; from now on they are known, and LOADING. NOT_FOUND if
  // the folder cannot be read or holds no model; INVALID_ARGUMENT if a name is
  // not an id or is given twice.
  absl::Status Scan();

  // Reads, verifies, loads and warms each version in turn; it is then READY or
  // UNAVAILABLE, and `changed` is told. The first error, with the version's
  // name; CANCELLED if `stop` says so, asked before each, and while it is
  // prepared and its batches are measured. Both are called for later loads and
  // unloads too, on the repository's own threads, as long as this lives.
  absl::Status LoadAll(const Changed& changed,
                       const std::function<bool()>& stop);

  // Reads the folder of model `id` again and loads what is wanted of it, or the
  // version that is asked for, which is wanted until it is unloaded. A version
  // that is READY and whose files have not changed stays as it is, unless
  // `request.batching` is set. The versions that are no longer wanted are
  // unloaded once the new ones are READY. Then `done` is called, on one of the
  // repository's own threads, with the first error, if any; what served before
  // serves on then. It may call this, but must not block.
  //
  // FAILED_PRECONDITION with reason MODEL_CONTROL_OFF without explicit_control,
  // NOT_FOUND with reason MODEL_NOT_FOUND if there is no such folder,
  // RESOURCE_EXHAUSTED with reason QUEUE_FULL if many calls wait, UNAVAILABLE
  // with reason DRAINING if the repository is being destroyed. What is refused
  // at once is told to `done` before this returns.
  void LoadModel(const std::string& id, LoadRequest request, Done done);

  // Stops to serve a version, or all of the model and its labels with them. It
  // stays so until a call loads it. A running load of it ends with CANCELLED.
  // Requests that were admitted are answered.
  // `done` is called when no new request finds it, as above.
  //
  // Errors as above; FAILED_PRECONDITION with reason VERSION_IN_USE if the one
  // version has a label.
  void UnloadModel(const std::string& id, std::optional<int64_t> version,
                   Done done);

  // From now on "models/{id}/labels/{label}" is this version; none: the label
  // is removed. With the label `stable` the version is what "{id}" means. A
  // version with a label is served whatever the policy is.
  //
  // INVALID_ARGUMENT with reason INVALID_FIELD and field "label",
  // NOT_FOUND with reason MODEL_NOT_FOUND, UNAVAILABLE with reason
  // MODEL_NOT_READY if the version is not READY.
  absl::Status SetLabel(const std::string& id, const std::string& label,
                        std::optional<int64_t> version) {
    return catalog_.SetLabel(id, label, version);
  }

  // Whether any version of `id` is READY.
  bool IsServing(const std::string& id) const { return catalog_.IsServing(id); }

  // The version that `name` means: "{id}", "models/{id}",
  // "models/{id}/versions/{n}", "models/{id}/labels/{label}", or "": the only
  // model for `task`, or the one of several that is the default for it, or the
  // only one at all. Without a version it is the version with the label
  // `stable`, else the highest that is READY and not `canary`, else the highest
  // READY, else the highest.
  // NOT_FOUND with reason MODEL_NOT_FOUND, or INVALID_ARGUMENT with reason
  // INVALID_FIELD and field `field`. A named model may be for another task.
  absl::StatusOr<std::shared_ptr<ModelVersion>> Find(
      absl::string_view name, absl::string_view field,
      std::optional<model::VisionTask> task = std::nullopt) const {
    return catalog_.Find(name, field, task);
  }

  // The versions that are served, or were asked for, in all states, by
  // ascending id and number.
  std::vector<std::shared_ptr<ModelVersion>> List() const {
    return catalog_.List();
  }

 private:
  using Version = std::shared_ptr<ModelVersion>;

  // ---- Called by the repository's threads: one at a time for each model ----

  // How a version is loaded.
  struct LoadWay {
    server::Worker* background = nullptr;  // See ModelLoader::Job.
    std::optional<v1::Batching> batching;  // See LoadRequest.
    std::function<bool()> cancelled = [] { return false; };
  };

  // Waits until LoadAll() has loaded what is served first. False if the
  // repository is being destroyed.
  bool AwaitStart() ABSL_LOCKS_EXCLUDED(mu_);
  // Loads what is to be served first.
  absl::Status LoadFirst() ABSL_LOCKS_EXCLUDED(mu_);
  // A hint for an error about an id that is not known.
  std::string Others(const std::string& id) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void LoadNow(const std::string& id, const LoadRequest& request,
               server::Worker& background, const Done& done)
      ABSL_LOCKS_EXCLUDED(mu_);
  void UnloadNow(const std::string& id, std::optional<int64_t> version,
                 const Done& done) ABSL_LOCKS_EXCLUDED(mu_);
  // Looks at the folder and changes what has to be. Returns when to look again.
  absl::Duration Poll() ABSL_LOCKS_EXCLUDED(mu_);
  // Loads and unloads versions of a model as its folder, just read, demands.
  void PollModel(const std::string& id, ModelFolder folder)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Looks at the folder of a model.
  ModelFolder LookAt(const std::string& id) const;
  void Found(const std::string& id, ModelFolder folder, bool at_once = false)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Writes what has become wrong with a model's policy to the log.
  void LogPolicyFaults(const std::string& id, const absl::Status& policy)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void LogLeftOut(std::map<std::string, std::string> left_out);
  // Loads what is to be loaded of a model, sets its labels, then unloads what
  // is not wanted.
  absl::Status Update(const std::string& id, bool at_once, const LoadWay& way)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Lets go of mu_ while the version is read and prepared.
  absl::Status LoadVersion(const std::string& id, int64_t number,
                           const LoadWay& way)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Repeats a load that lacked memory, after the other versions of the model
  // are unloaded. Lets go of mu_ meanwhile.
  absl::StatusOr<std::unique_ptr<LoadedModel>> LoadAlone(
      const ModelLoader::Job& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status UnloadVersion(const std::string& id, int64_t number,
                             const std::string& reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Unloads what is not wanted of a model, and what failed and is gone.
  void UnloadUnwanted(const std::string& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Sets the labels that the policy has and that can be set by now.
  void SetLabels(const std::string& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool Stopping() const;
  // Whether a call waits to unload the version.
  bool UnloadWaits(const std::string& id, int64_t number) const
      ABSL_LOCKS_EXCLUDED(unloads_mu_);

  // Why a call cannot wait.
  absl::Status Refusal() const;

  const Options options_;
  observability::Logger& log_;
  ModelLoader loader_;
  ModelCatalog catalog_;
  Reaper reaper_;  // Uses the catalog.

  // Set by LoadAll() before anything is loaded.
  Changed changed_ = [](const ModelVersion&) {};
  std::function<bool()> stop_ = [] { return false; };

  // Held by each job, but not while a version is read and prepared.
  absl::Mutex mu_;
  std::map<std::string, ModelPlan> plans_ ABSL_GUARDED_BY(mu_);  // By id.
  // Faults of policies that were logged, by id and field.
  std::map<std::string, std::map<std::string, std::string>> policy_faults_
      ABSL_GUARDED_BY(mu_);
  bool started_ ABSL_GUARDED_BY(mu_) = false;  // LoadAll() has ended.

  // Used by the poller's thread, and before by Scan().
  std::map<std::string, std::string> left_out_;  // Logged, by path.
  bool folder_unreadable_ = false;               // Logged.

  mutable absl::Mutex unloads_mu_;
  // The calls that wait to unload a version, or without a number all versions,
  // of a model.
  std::multimap<std::string, std::optional<int64_t>> unloads_
      ABSL_GUARDED_BY(unloads_mu_);

  LoadLanes lanes_;        // Uses everything above.
  server::Worker poller_;  // Last: uses everything above. It starts the first
                           // loads, too.
};

// The models of a server of this config.
ModelRepository::Options RepositoryOptions(
    const v1::ServerConfig& config,
    std::function<void(const absl::Status&)> device_failed =
        [](const absl::Status&) {},
    std::function<void()> background_starts = [] {});

// Estimates the bytes that the models of a server of this config will take when
// it has started, by the sizes of their files. What cannot be read counts as
// nothing.
int64_t MemoryOfModels(const v1::ServerConfig& config);

// Calls `use` with each version that a server of this config would load at its
// start, read and verified, until one fails. Errors name the version.
absl::Status ForEachServed(
    const v1::ServerConfig& config, observability::Logger* log,
    const std::function<absl::Status(const ModelVersion& version,
                                     const ModelDirectory& directory)>& use);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_MODEL_REPOSITORY_H_
