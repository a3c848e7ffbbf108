// Converts a server's configuration to repository options.

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/proto_duration.h"
#include "server/observability/memory_limit.h"
#include "server/repository/model_directory.h"
#include "server/repository/model_folders.h"
#include "server/repository/model_plan.h"
#include "server/repository/model_repository.h"
#include "server/repository/version_files.h"

namespace sfmamba::repository {
namespace {

// The estimated memory of a serving model is kOfFile times the size of its
// files, plus kBesideWeights bytes. The memory contains both the files, which
// are mapped, and the prepared weights. The estimate is too high for small
// models. For example, the models in the folder models/ need only 40 MB each,
// but the estimates are 50 to 65 MB.
constexpr int64_t kOfFile = 3;
constexpr int64_t kBesideWeights = 32 << 20;

}  // namespace

ModelRepository::Options RepositoryOptions(
    const v1::ServerConfig& config,
    std::function<void(const absl::Status&)> device_failed,
    std::function<void()> background_starts) {
  ModelRepository::Options options;
  options.directory = config.model_repository();
  for (const std::string& model : config.model()) {
    options.models.insert(absl::StrSplit(model, absl::MaxSplits('=', 1)));
  }
  options.random_init = config.random_init();
  options.on_gpus = config.device() == "cuda";
  options.executor.drain_timeout = base::FromProto(config.drain_timeout());
  options.executor.profile_budget = base::FromProto(config.profile_budget());
  options.executor.batch.client_share = config.client_share();
  options.executor.device_failed = std::move(device_failed);
  options.background_starts = std::move(background_starts);
  v1::Precision_Parse(config.default_precision(), &options.default_precision);
  const std::string& control = config.model_control();
  options.explicit_control =
      control == "explicit" || control == "poll+explicit";
  if (control == "poll" || control == "poll+explicit") {
    options.poll_period = base::FromProto(config.poll_period());
  }
  options.startup_models =
      absl::StrSplit(config.startup_models(), ',', absl::SkipWhitespace());
  options.free_memory = [budget = config.memory_budget_bytes()] {
    return observability::FreeMemory(/*kept=*/budget);
  };
  options.unload_first = config.load_policy() == "resource";
  return options;
}

int64_t MemoryOfModels(const v1::ServerConfig& config) {
  int64_t bytes = 0;
  const auto add = [&bytes](const VersionPath& path) {
    const absl::StatusOr<VersionFiles> files = FindVersionFiles(path);
    if (files.ok()) bytes += kOfFile * files->weights_size + kBesideWeights;
  };
  const ModelRepository::Options options = RepositoryOptions(config);
  for (const auto& [id, path] : options.models) add({path, ""});
  if (options.directory.empty()) return bytes;
  auto found = LookAtModels(options.directory, options.random_init);
  if (!found.ok()) return bytes;
  for (auto& [id, folder] : found->models) {
    const std::vector<std::string>& first = options.startup_models;
    if (!first.empty() && !absl::c_linear_search(first, id)) continue;
    ModelPlan plan;
    plan.Found(std::move(folder), /*at_once=*/true);
    for (int64_t number : plan.Wanted({})) add(plan.Folder(number)->path);
  }
  return bytes;
}

absl::Status ForEachServed(
    const v1::ServerConfig& config, observability::Logger* log,
    const std::function<absl::Status(const ModelVersion& version,
                                     const ModelDirectory& directory)>& use) {
  observability::Metrics metrics{observability::BuildInfo()};
  ModelRepository repository(RepositoryOptions(config), /*load=*/nullptr,
                             &metrics, log);
  const absl::Status scanned = repository.Scan();
  if (!scanned.ok()) return scanned;
  for (const auto& version : repository.List()) {
    const absl::StatusOr<ModelDirectory> directory = ReadModelDirectory(
        version->path(), config.random_init(), {}, config.device() == "cuda");
    const absl::Status status =
        directory.ok() ? use(*version, *directory) : directory.status();
    if (status.ok()) continue;
    return absl::Status(status.code(),
                        absl::StrCat(version->name(), ": ", status.message()));
  }
  return absl::OkStatus();
}

}  // namespace sfmamba::repository
