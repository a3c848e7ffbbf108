#include "server/repository/model_repository.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/proto_duration.h"
#include "base/steady_clock.h"
#include "server/base/reasons.h"
#include "server/batching/batch_task.h"

namespace sfmamba::repository {
namespace {

namespace fs = std::filesystem;

// [A-Za-z0-9][A-Za-z0-9._-]{0,127}
bool IsId(absl::string_view name) {
  if (name.empty() || name.size() > 128 || !absl::ascii_isalnum(name[0])) {
    return false;
  }
  for (char c : name) {
    if (!absl::ascii_isalnum(c) && c != '.' && c != '_' && c != '-') {
      return false;
    }
  }
  return true;
}

// The version that `name` is, or 0 if it is not a positive decimal without
// leading zero.
int64_t VersionNumber(absl::string_view name) {
  int64_t number = 0;
  // SimpleAtoi() would take signs and spaces.
  const bool is_decimal =
      !name.empty() && name[0] != '0' &&
      std::all_of(name.begin(), name.end(), absl::ascii_isdigit);
  return is_decimal && absl::SimpleAtoi(name, &number) ? number : 0;
}

// A folder inside `root` wherever links lead.
bool IsFolderInside(const fs::path& root, const fs::path& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  return !error && real.parent_path() == root && fs::is_directory(real, error);
}

// Names of the entries of `path`; empty if it cannot be read.
std::vector<std::string> Entries(const fs::path& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(path, error), end; !error && it != end;
       it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  return names;
}

absl::Status Stopped() { return absl::CancelledError("loading was stopped"); }

// The highest published version in the folder of a model; 0 if there is none.
int64_t HighestVersion(const fs::path& model) {
  int64_t highest = 0;
  for (const std::string& name : Entries(model)) {
    std::error_code error;
    const int64_t number = VersionNumber(name);
    if (number > highest && IsFolderInside(model, model / name) &&
        fs::exists(model / name / kConfigFile, error)) {
      highest = number;
    }
  }
  return highest;
}

}  // namespace

ModelRepository::ModelRepository(Options options, Load load,
                                 observability::Metrics* metrics,
                                 observability::Logger* log)
    : options_(std::move(options)),
      load_(std::move(load)),
      metrics_(*metrics),
      log_(*log),
      times_(options_.profile_dir, log) {}

ModelRepository::~ModelRepository() {
  for (const std::shared_ptr<ModelVersion>& version : List()) {
    WriteTimes(*version);
  }
}

absl::Status ModelRepository::Add(const std::string& id, int64_t number,
                                  const std::string& path) {
  if (!IsId(id)) {
    return absl::InvalidArgumentError(
        absl::StrCat("model name: got \"", id,
                     "\", expected [A-Za-z0-9][A-Za-z0-9._-]*, at "
                     "most 128 characters"));
  }
  const absl::StatusOr<model::VisionTask> task = ReadTask(path);
  auto version = std::make_shared<ModelVersion>(
      id, number, path, task.ok() ? std::make_optional(*task) : std::nullopt,
      metrics_.Model(id, absl::StrCat(number)));
  version->metrics()->StateChanged(version->state());
  absl::MutexLock lock(&mu_);
  if (!versions_.emplace(id, std::move(version)).second) {
    return absl::InvalidArgumentError(
        absl::StrCat("model \"", id, "\" is given twice"));
  }
  return absl::OkStatus();
}

absl::Status ModelRepository::Scan() {
  if (!options_.directory.empty()) {
    std::error_code error;
    const fs::path root = fs::canonical(options_.directory, error);
    if (error || !fs::is_directory(root, error)) {
      return absl::NotFoundError(absl::StrCat(
          "model repository: there is no folder ", options_.directory));
    }
    for (const std::string& id : Entries(root)) {
      const fs::path model = root / id;
      if (!IsId(id) || !IsFolderInside(root, model)) continue;
      const int64_t number = HighestVersion(fs::canonical(model, error));
      if (number == 0) continue;
      const absl::Status status =
          Add(id, number, (model / absl::StrCat(number)).string());
      if (!status.ok()) return status;
    }
  }
  if (!options_.model_path.empty()) {
    const absl::Status status =
        Add(options_.model_name, 1, options_.model_path);
    if (!status.ok()) return status;
  }
  if (List().empty()) {
    return absl::NotFoundError(
        absl::StrCat("model repository: ", options_.directory,
                     " holds no model (<name>/<version>/", kConfigFile, ")"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<LoadedModel>> ModelRepository::LoadOne(
    const ModelVersion& version, const std::function<bool()>& stop) const {
  absl::StatusOr<ModelDirectory> directory =
      ReadModelDirectory(version.path(), options_.random_init);
  if (!directory.ok()) return directory.status();
  if (directory->weights_path.empty()) {
    log_.Warning(observability::LogModule::kModels, "the weights are random",
                 {{"model", version.name()}});
  }
  absl::StatusOr<std::unique_ptr<model::VisionModel>> model =
      load_(*directory, TellOfCaptures(version));
  if (!model.ok()) {
    // The state's reason is shown to clients: no paths.
    return absl::Status(
        model.status().code(),
        absl::StrReplaceAll(model.status().message(),
                            {{directory->weights_path, kWeightsFile}}));
  }
  if (stop()) return Stopped();
  const model::Precision asked = directory->config.precision;
  if (asked != model::Precision::kFloat32 &&
      (*model)->precision() == model::Precision::kFloat32) {
    log_.Warning(
        observability::LogModule::kModels,
        absl::StrCat("converted to FP32: this processor does not compute ",
                     asked == model::Precision::kFloat16 ? "FP16" : "BF16"),
        {{"model", version.name()}});
  }
  auto loaded = std::make_shared<LoadedModel>();
  batching::Executor::Options options;
  options.name = version.id();
  options.version = absl::StrCat(version.number());
  options.batch = directory->batch;
  options.batch.client_share = options_.client_share;
  options.devices = devices_;
  options.drain_timeout = options_.drain_timeout;
  options.profile_budget = options_.profile_budget;
  loaded->profile_key = {
      directory->weights_sha256,
      absl::StrCat((*model)->device(), ", ", (*model)->contexts(),
                   " contexts, batches of ", directory->batch.max_batch_size),
      options_.build};
  options.times = times_.Read(version.name(), loaded->profile_key);
  options.device_failed = options_.device_failed;
  options.stop = stop;
  loaded->directory = *std::move(directory);
  loaded->executor = std::make_unique<batching::Executor>(
      std::move(options), *std::move(model), &metrics_);
  const absl::Status prepared = loaded->executor->WaitUntilPrepared();
  if (!prepared.ok()) return prepared;
  loaded->load_time = absl::Now();
  return loaded;
}

void ModelRepository::WriteTimes(const ModelVersion& version) const {
  const auto loaded = version.Loaded();
  if (!loaded.ok()) return;
  times_.Write(version.name(), (*loaded)->profile_key,
               (*loaded)->executor->Times());
}

ModelRepository::CaptureFailed ModelRepository::TellOfCaptures(
    const ModelVersion& version) const {
  return [log = &log_, name = version.name(),
          metrics = version.metrics()](const absl::Status& error) {
    metrics->CaptureFailed();
    log->Warning(observability::LogModule::kModels,
                 "a graph could not be recorded: its batches are launched "
                 "kernel by kernel until a later try succeeds",
                 {{"model", name}, {"error", error.message()}});
  };
}

absl::Status ModelRepository::LoadAll(
    const std::function<void(const ModelVersion&)>& changed,
    const std::function<bool()>& stop) {
  absl::Status first;
  for (const std::shared_ptr<ModelVersion>& version : List()) {
    if (stop()) return Stopped();
    const absl::Time start = base::SteadyNow();
    absl::StatusOr<std::shared_ptr<LoadedModel>> loaded =
        LoadOne(*version, stop);
    if (absl::IsCancelled(loaded.status())) return loaded.status();
    const absl::Duration duration = base::SteadyNow() - start;
    version->metrics()->LoadDone(loaded.ok(), duration);
    if (loaded.ok()) {
      log_.Info(observability::LogModule::kModels, "model is ready",
                {{"model", version->name()},
                 {"device", (*loaded)->executor->device()},
                 {"seconds", absl::ToDoubleSeconds(duration)}});
      version->SetReady(*std::move(loaded));
      version->metrics()->StateChanged(version->state());
      WriteTimes(*version);
    } else {
      log_.Error(
          observability::LogModule::kModels, "model is not ready",
          {{"model", version->name()}, {"error", loaded.status().message()}});
      version->SetUnavailable(loaded.status().message());
      version->metrics()->StateChanged(version->state());
      first.Update(absl::Status(
          loaded.status().code(),
          absl::StrCat(version->name(), ": ", loaded.status().message())));
    }
    changed(*version);
  }
  return first;
}

absl::StatusOr<std::shared_ptr<ModelVersion>> ModelRepository::FindOnly(
    absl::string_view field, std::optional<model::VisionTask> task) const {
  if (versions_.size() == 1) return versions_.begin()->second;
  std::shared_ptr<ModelVersion> found;
  int count = 0;
  for (const auto& [id, version] : versions_) {
    if (task.has_value() && version->task() != task) continue;
    found = version;
    ++count;
  }
  if (count == 1) return found;
  return server::InvalidField(
      field,
      absl::StrCat("got no name, expected one: there are ", count, " models",
                   task ? absl::StrCat(" for ", TaskName(*task)) : ""));
}

absl::StatusOr<std::shared_ptr<ModelVersion>> ModelRepository::Find(
    absl::string_view name, absl::string_view field,
    std::optional<model::VisionTask> task, Use /*use*/) const {
  absl::MutexLock lock(&mu_);
  if (name.empty()) return FindOnly(field, task);
  absl::string_view id = name;
  int64_t number = 0;
  if (absl::ConsumePrefix(&id, "models/")) {
    const size_t slash = id.find('/');
    if (slash != absl::string_view::npos) {
      absl::string_view rest = id.substr(slash + 1);
      id = id.substr(0, slash);
      if (absl::ConsumePrefix(&rest, "versions/")) {
        number = VersionNumber(rest);
        if (number == 0) return server::ModelNotFound(name);
      } else if (absl::ConsumePrefix(&rest, "labels/") && IsId(rest)) {
        return server::ModelNotFound(name);  // No label is ever set.
      } else {
        return server::InvalidField(field,
                                    "expected {id}, models/{id}, "
                                    "models/{id}/versions/{n} or "
                                    "models/{id}/labels/{label}");
      }
    }
  }
  if (!IsId(id)) {
    return server::InvalidField(
        field, "expected an id of [A-Za-z0-9][A-Za-z0-9._-]{0,127}");
  }
  const auto found = versions_.find(std::string(id));
  if (found == versions_.end() ||
      (number != 0 && number != found->second->number())) {
    return server::ModelNotFound(name);
  }
  return found->second;
}

void ModelRepository::LoadModel(const std::string&, LoadRequest, Done done) {
  done(server::ModelControlOff());
}

void ModelRepository::UnloadModel(const std::string&, std::optional<int64_t>,
                                  Done done) {
  done(server::ModelControlOff());
}

absl::Status ModelRepository::SetLabel(const std::string& id,
                                       const std::string&,
                                       std::optional<int64_t>) {
  const auto version = Find(id, "id");
  return version.ok() ? server::NotSupported("a label") : version.status();
}

absl::Status ModelRepository::SetCanaryShare(const std::string& id, int) {
  const auto version = Find(id, "id");
  return version.ok() ? server::NotSupported("a canary") : version.status();
}

int ModelRepository::CanaryShare(const std::string&) const { return 0; }

bool ModelRepository::IsServing(const std::string& id) const {
  const auto version = Find(id, "id");
  return version.ok() &&
         (*version)->state() == observability::ModelState::kReady;
}

std::vector<std::shared_ptr<ModelVersion>> ModelRepository::List() const {
  absl::MutexLock lock(&mu_);
  std::vector<std::shared_ptr<ModelVersion>> all;
  for (const auto& [id, version] : versions_) all.push_back(version);
  return all;
}

ModelRepository::Options RepositoryOptions(
    const v1::ServerConfig& config,
    std::function<void(const absl::Status&)> device_failed, std::string build) {
  ModelRepository::Options options;
  options.directory = config.model_repository();
  options.model_path = config.model_path();
  options.model_name = config.model_name();
  options.random_init = config.random_init();
  options.drain_timeout = base::FromProto(config.drain_timeout());
  options.client_share = config.client_share();
  options.profile_budget = base::FromProto(config.profile_budget());
  options.profile_dir = config.profile_dir();
  options.build = std::move(build);
  options.device_failed = std::move(device_failed);
  return options;
}

}  // namespace sfmamba::repository
