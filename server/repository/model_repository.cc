#include "server/repository/model_repository.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/notification.h"
#include "base/steady_clock.h"
#include "server/errors/reasons.h"
#include "server/repository/model_folders.h"
#include "server/repository/model_name.h"
#include "server/repository/version_files.h"

namespace sfmamba::repository {
namespace {

using observability::LogModule;
using observability::ModelState;

// The maximum number of load and unload jobs that wait for other jobs.
constexpr size_t kMostCalls = 256;
constexpr absl::Duration kRetryCall = absl::Seconds(1);
// A load or unload job waits until LoadAll() has loaded the first versions.
// While it waits, the job checks at this interval whether the repository is
// being destroyed.
constexpr absl::Duration kAskPeriod = absl::Milliseconds(100);
constexpr char kUnloadedReason[] = "a call has unloaded it";
constexpr char kNotLoadedReason[] = "it waits for a call that loads it";

absl::Status Stopped() { return absl::CancelledError("loading was stopped"); }

}  // namespace

ModelRepository::ModelRepository(Options options, Load load,
                                 observability::Metrics* metrics,
                                 observability::Logger* log)
    : options_(std::move(options)),
      log_(*log),
      loader_(options_, std::move(load), metrics, log),
      catalog_(metrics),
      reaper_([this](const LoadedModel* model) { catalog_.Freed(model); }),
      lanes_(kMostCalls, options_.background_starts),
      poller_({"poller"}) {}

ModelRepository::~ModelRepository() {
  poller_.Stop();
  lanes_.Stop();
}

bool ModelRepository::Stopping() const { return poller_.stopping() || stop_(); }

// ---- Startup ----

ModelFolder ModelRepository::LookAt(const std::string& id) const {
  const auto single = options_.models.find(id);
  if (single != options_.models.end()) {
    ModelFolder folder;
    VersionFolder version =
        LookAtVersion({single->second, ""}, options_.random_init);
    if (!version.fingerprint.empty()) folder.versions[1] = std::move(version);
    return folder;
  }
  if (options_.directory.empty()) return ModelFolder();
  return LookAtModel(options_.directory, id, options_.random_init);
}

void ModelRepository::Found(const std::string& id, ModelFolder folder,
                            bool at_once) {
  const absl::Status policy = folder.policy.status();
  plans_[id].Found(std::move(folder), at_once);
  LogPolicyFaults(id, policy);
}

void ModelRepository::LogPolicyFaults(const std::string& id,
                                      const absl::Status& policy) {
  const ModelPlan& plan = plans_[id];
  std::vector<std::string> labels;
  for (const auto& [label, number] : plan.labels_to_set()) {
    if (!number.has_value() || plan.Folder(*number) != nullptr) continue;
    labels.push_back(absl::StrCat(label, " of version ", *number));
  }
  using observability::Logger;
  struct Fault {
    void (Logger::*log)(LogModule, absl::string_view, Logger::Fields);
    const char* message;
    const char* field;
    std::string text;
  };
  const Fault faults[] = {
      {&Logger::Error, "the policy of versions is not changed", "error",
       std::string(policy.message())},
      {&Logger::Warning, "the policy labels versions that are not there",
       "labels", absl::StrJoin(labels, ", ")},
      {&Logger::Warning, "the policy names versions that are not there",
       "versions", absl::StrJoin(plan.MissingVersions(), ", ")}};
  std::map<std::string, std::string>& logged = policy_faults_[id];
  for (const Fault& fault : faults) {
    std::string& before = logged[fault.field];
    if (!fault.text.empty() && fault.text != before) {
      (log_.*fault.log)(
          LogModule::kModels, fault.message,
          {{"model", absl::StrCat("models/", id)}, {fault.field, fault.text}});
    }
    before = fault.text;
  }
}

void ModelRepository::LogLeftOut(std::map<std::string, std::string> left_out) {
  for (const auto& [folder, why] : left_out) {
    const auto logged = left_out_.find(folder);
    if (logged != left_out_.end() && logged->second == why) continue;
    log_.Warning(LogModule::kModels, "a folder is not served",
                 {{"folder", folder}, {"why", why}});
  }
  left_out_ = std::move(left_out);
}

absl::Status ModelRepository::Scan() {
  absl::MutexLock lock(&mu_);
  if (!options_.directory.empty()) {
    absl::StatusOr<RepositoryFolders> found =
        LookAtModels(options_.directory, options_.random_init);
    if (!found.ok()) return found.status();
    LogLeftOut(std::move(found->left_out));
    for (auto& [id, folder] : found->models) Found(id, std::move(folder));
  }
  for (const auto& [id, path] : options_.models) {
    if (plans_.count(id) > 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("model: got \"", id, "\", expected an id that ",
                       options_.directory, " does not have"));
    }
    // Adds version 1 even if its folder is empty. Loading the version then
    // reports the error.
    ModelFolder folder;
    folder.versions[1] = LookAtVersion({path, ""}, options_.random_init);
    Found(id, std::move(folder));
  }
  if (plans_.empty()) {
    return absl::NotFoundError(
        absl::StrCat("model repository: ", options_.directory,
                     " holds no model (<name>/<version>/", kConfigFile, " or ",
                     kHuggingFaceFile, ")"));
  }
  const std::vector<std::string>& first = options_.startup_models;
  for (const std::string& id : first) {
    if (plans_.count(id) > 0) continue;
    return absl::NotFoundError(
        absl::StrCat("startup_models: there is no model \"", id, "\""));
  }
  for (auto& [id, plan] : plans_) {
    const bool waits = options_.explicit_control && !first.empty() &&
                       std::find(first.begin(), first.end(), id) == first.end();
    for (int64_t number : plan.Wanted({})) {
      const Version version =
          catalog_.Add(id, number, plan.Folder(number)->path);
      if (waits) catalog_.Unload(id, number, kNotLoadedReason).IgnoreError();
    }
    if (waits) plan.Drop();
  }
  return absl::OkStatus();
}

absl::Status ModelRepository::LoadAll(const Changed& changed,
                                      const std::function<bool()>& stop) {
  changed_ = changed;
  stop_ = stop;
  absl::Status status = Stopped();
  absl::Notification done;
  const bool pushed = poller_.Push([&](bool stopped) {
    if (!stopped) status = LoadFirst();
    done.Notify();
  });
  if (!pushed) return status;
  done.WaitForNotification();
  if (!absl::IsCancelled(status) &&
      options_.poll_period != absl::InfiniteDuration()) {
    poller_.Repeat(absl::ZeroDuration(), [this] { return Poll(); });
  }
  return status;
}

absl::Status ModelRepository::LoadFirst() {
  absl::MutexLock lock(&mu_);
  absl::Status first;
  for (auto& [id, plan] : plans_) {
    const absl::Status status = Update(id, /*at_once=*/true, {});
    if (Stopping()) return Stopped();
    first.Update(status);
  }
  started_ = true;
  return first;
}

// ---- Load and unload calls ----

void ModelRepository::LoadModel(const std::string& id, LoadRequest request,
                                Done done) {
  if (!options_.explicit_control) return done(server::ModelControlOff());
  const bool pushed =
      lanes_.Push(id, [this, id, request = std::move(request), done](
                          server::Worker& background, bool stopped) {
        stopped || !AwaitStart() ? done(server::Draining("the server"))
                                 : LoadNow(id, request, background, done);
      });
  if (!pushed) done(Refusal());
}

bool ModelRepository::AwaitStart() {
  absl::MutexLock lock(&mu_);
  while (!mu_.AwaitWithTimeout(absl::Condition(&started_), kAskPeriod)) {
    if (Stopping()) return false;
  }
  return true;
}

void ModelRepository::UnloadModel(const std::string& id,
                                  std::optional<int64_t> version, Done done) {
  if (!options_.explicit_control) return done(server::ModelControlOff());
  const auto wait = [&] {
    absl::MutexLock lock(&unloads_mu_);
    return unloads_.emplace(id, version);
  }();
  const auto end_wait = [this, wait] {
    absl::MutexLock lock(&unloads_mu_);
    unloads_.erase(wait);
  };
  const bool pushed =
      lanes_.Push(id, [this, id, version, done, end_wait](
                          server::Worker& /*background*/, bool stopped) {
        end_wait();
        stopped || !AwaitStart() ? done(server::Draining("the server"))
                                 : UnloadNow(id, version, done);
      });
  if (pushed) return;
  end_wait();
  done(Refusal());
}

bool ModelRepository::UnloadWaits(const std::string& id, int64_t number) const {
  absl::MutexLock lock(&unloads_mu_);
  const auto [begin, end] = unloads_.equal_range(id);
  return std::any_of(begin, end, [number](const auto& unload) {
    return unload.second.value_or(number) == number;
  });
}

absl::Status ModelRepository::Refusal() const {
  if (poller_.stopping()) return server::Draining("the server");
  return server::QueueFull(
      "load",
      absl::StrCat("got ", kMostCalls,
                   " loads and unloads that wait already, expected fewer"),
      kRetryCall);
}

std::string ModelRepository::Others(const std::string& id) const {
  std::vector<std::string> ids;
  for (const auto& [other, plan] : plans_) {
    if (other != id) ids.push_back(other);
  }
  return OtherIds(id, ids);
}

void ModelRepository::LoadNow(const std::string& id, const LoadRequest& request,
                              server::Worker& background, const Done& done) {
  ModelFolder folder = LookAt(id);
  const bool is_there = request.version.has_value()
                            ? folder.versions.count(*request.version) > 0
                            : !folder.versions.empty();
  if (!is_there) {
    absl::MutexLock lock(&mu_);
    return done(server::ModelNotFound(
        request.version.has_value() ? VersionName(id, *request.version) : id,
        folder.versions.empty() ? Others(id) : ""));
  }
  absl::MutexLock lock(&mu_);
  Found(id, std::move(folder), /*at_once=*/true);
  ModelPlan& plan = plans_[id];
  request.version.has_value() ? plan.Want(*request.version) : plan.Want();
  const std::set<int64_t> labelled = catalog_.LabelledOf(id);
  const std::vector<int64_t> changed =
      plan.ToLoad(labelled, base::SteadyNow(), /*at_once=*/true);
  absl::Status first;
  for (int64_t number : plan.Wanted(labelled)) {
    if (request.version.value_or(number) != number) continue;
    const bool load = request.batching.has_value() ||
                      std::count(changed.begin(), changed.end(), number) > 0;
    if (!load) continue;
    first.Update(LoadVersion(
        id, number, {&background, request.batching, request.cancelled}));
  }
  SetLabels(id);
  UnloadUnwanted(id);
  done(first);
}

void ModelRepository::UnloadNow(const std::string& id,
                                std::optional<int64_t> version,
                                const Done& done) {
  absl::MutexLock lock(&mu_);
  const auto plan = plans_.find(id);
  if (plan == plans_.end()) return done(server::ModelNotFound(id, Others(id)));
  if (version.has_value()) {
    const absl::Status status = UnloadVersion(id, *version, kUnloadedReason);
    if (status.ok()) plan->second.Drop(*version);
    return done(status);
  }
  catalog_.ClearLabels(id);
  plan->second.Drop();
  absl::Status first;
  for (const auto& [number, listed] : catalog_.VersionsOf(id)) {
    first.Update(UnloadVersion(id, number, kUnloadedReason));
  }
  done(first);
}

// ---- Polling ----

absl::Duration ModelRepository::Poll() {
  std::map<std::string, ModelFolder> models;
  if (!options_.directory.empty()) {
    auto found = LookAtModels(options_.directory, options_.random_init);
    if (!found.ok()) {
      // All models keep serving, because the folder may be unreadable only for
      // a short time, for example after a disk error.
      if (!folder_unreadable_) {
        log_.Error(LogModule::kModels, "the models' folder cannot be read",
                   {{"error", found.status().message()}});
      }
      folder_unreadable_ = true;
      return options_.poll_period;
    }
    LogLeftOut(std::move(found->left_out));
    models = std::move(found->models);
  }
  folder_unreadable_ = false;
  for (const auto& [id, path] : options_.models) models[id] = LookAt(id);
  absl::MutexLock lock(&mu_);
  // `models` has no entry for a known model whose folder no longer exists. The
  // operator [] adds an empty entry for this model, so that PollModel() unloads
  // the model. The operator does not change existing entries.
  for (const auto& [id, plan] : plans_) models[id];
  for (auto& [id, folder] : models) {
    // A model with running or waiting jobs is skipped until the next poll.
    if (!lanes_.IsBusy(id)) PollModel(id, std::move(folder));
  }
  return options_.poll_period;
}

void ModelRepository::PollModel(const std::string& id, ModelFolder folder) {
  Found(id, std::move(folder));
  const bool loads = !plans_[id]
                          .ToLoad(catalog_.LabelledOf(id), base::SteadyNow(),
                                  /*at_once=*/false)
                          .empty();
  if (loads) {
    lanes_.Push(id, [this, id](server::Worker& background, bool stopped) {
      if (stopped) return;
      absl::MutexLock lock(&mu_);
      Update(id, /*at_once=*/false, {&background})
          .IgnoreError();  // Errors are logged.
    });
    return;
  }
  SetLabels(id);
  UnloadUnwanted(id);
  if (plans_[id].is_empty() && catalog_.VersionsOf(id).empty()) {
    plans_.erase(id);
    policy_faults_.erase(id);
  }
}

absl::Status ModelRepository::Update(const std::string& id, bool at_once,
                                     const LoadWay& way) {
  ModelPlan& plan = plans_[id];
  absl::Status first;
  for (int64_t number :
       plan.ToLoad(catalog_.LabelledOf(id), base::SteadyNow(), at_once)) {
    const absl::Status status = LoadVersion(id, number, way);
    if (Stopping()) return status;
    first.Update(status);
  }
  SetLabels(id);
  UnloadUnwanted(id);
  return first;
}

void ModelRepository::UnloadUnwanted(const std::string& id) {
  ModelPlan& plan = plans_[id];
  const std::set<int64_t> labelled = catalog_.LabelledOf(id);
  for (int64_t number : plan.ToUnload(labelled)) {
    // UnloadVersion() fails if the version has just received a label. The
    // version then stays loaded.
    UnloadVersion(id, number, /*reason=*/"").IgnoreError();
  }
  const std::set<int64_t> wanted = plan.Wanted(labelled);
  for (const auto& [number, version] : catalog_.VersionsOf(id)) {
    const ModelState state = version->state();
    const bool serves =
        state == ModelState::kReady || state == ModelState::kUnloading;
    const bool keep =
        wanted.count(number) > 0 ||
        (plan.IsDropped(number) && plan.Folder(number) != nullptr);
    if (!serves && !keep) UnloadVersion(id, number, "").IgnoreError();
  }
}

}  // namespace sfmamba::repository
