// The parts of ModelRepository that load, label and unload single versions.

#include <malloc.h>

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/steady_clock.h"
#include "server/errors/reasons.h"
#include "server/repository/model_repository.h"

namespace sfmamba::repository {
namespace {

using observability::LogModule;
using observability::ModelState;

// The maximum time that a load waits for the memory of unloaded versions to be
// freed.
constexpr absl::Duration kUnloadPatience = absl::Seconds(30);

absl::Status Stopped() { return absl::CancelledError("loading was stopped"); }

}  // namespace

void ModelRepository::SetLabels(const std::string& id) {
  ModelPlan& plan = plans_[id];
  const std::map<std::string, std::optional<int64_t>> labels =
      plan.labels_to_set();
  for (const auto& [label, number] : labels) {
    // If setting the label fails, a later call of SetLabels() tries again.
    if (!catalog_.SetLabel(id, label, number).ok()) continue;
    plan.LabelSet(label);
    log_.Info(LogModule::kModels,
              number.has_value() ? "a label is set" : "a label is removed",
              {{"model", absl::StrCat("models/", id)},
               {"label", label},
               {"version", number.value_or(0)}});
  }
}

absl::Status ModelRepository::LoadVersion(const std::string& id, int64_t number,
                                          const LoadWay& way) {
  if (Stopping()) return Stopped();
  ModelPlan& plan = plans_[id];
  const VersionPath path = plan.Folder(number)->path;
  // Stores the batch times of the model's serving versions. If the new version
  // has the same network, its load uses these times and measures nothing.
  for (const auto& [other, served] : catalog_.VersionsOf(id)) {
    loader_.KeepTimes(*served);
  }
  Version version = catalog_.Get(id, number);
  if (version != nullptr && version->state() == ModelState::kReady) {
    // Creates the new version outside the catalog. The old version stays in the
    // catalog and serves requests until Serve() below replaces it.
    version = catalog_.Make(id, number, path);
  } else if (version == nullptr || !version->has_series() ||
             version->state() == ModelState::kUnloading) {
    version = catalog_.Add(id, number, path);
  }
  const absl::Time start = base::SteadyNow();
  const auto stop = [this, &way, &id, number] {
    return Stopping() || way.cancelled() || UnloadWaits(id, number);
  };
  const ModelLoader::Job job = {*version, way.batching, way.background, stop};
  mu_.Unlock();
  absl::StatusOr<std::unique_ptr<LoadedModel>> loaded = loader_.Run(job);
  mu_.Lock();
  if (absl::IsResourceExhausted(loaded.status()) && options_.unload_first) {
    loaded = LoadAlone(job);
  }
  if (absl::IsCancelled(loaded.status()) && Stopping()) return loaded.status();
  const absl::Duration duration = base::SteadyNow() - start;
  version->metrics()->LoadDone(loaded.ok(), duration);
  if (started_) version->metrics()->ReloadDone(loaded.ok());
  absl::Status status = loaded.status();
  if (status.ok()) {
    log_.Info(LogModule::kModels, "model is ready",
              {{"model", version->name()},
               {"variant", (*loaded)->directory.config.variant},
               {"configuration", (*loaded)->directory.config_source},
               {"device", (*loaded)->executor->device()},
               {"seconds", absl::ToDoubleSeconds(duration)}});
    catalog_.Serve(version, reaper_.Own(*std::move(loaded)));
    loader_.KeepTimes(*version);
    plan.Loaded(number);
    SetLabels(id);
  } else {
    log_.Error(LogModule::kModels, "model is not ready",
               {{"model", version->name()}, {"error", status.message()}});
    catalog_.Fail(version, status.message());
    malloc_trim(0);  // Returns the memory of the incomplete load to the system.
    plan.Failed(number, base::SteadyNow(), options_.poll_period);
    if (absl::IsCancelled(status)) return status;
    status = started_ ? server::LoadFailed(version->name(), status.message())
                      : absl::Status(status.code(),
                                     absl::StrCat(version->name(), ": ",
                                                  status.message()));
  }
  changed_(*version);
  return status;
}

absl::StatusOr<std::unique_ptr<LoadedModel>> ModelRepository::LoadAlone(
    const ModelLoader::Job& job) {
  const std::string& id = job.version.id();
  for (const auto& [number, version] : catalog_.VersionsOf(id)) {
    if (version->state() != ModelState::kReady) continue;
    const absl::Status status =
        UnloadVersion(id, number, "another version needs its memory");
    if (!status.ok()) return status;
  }
  mu_.Unlock();
  catalog_.AwaitFreed(kUnloadPatience);
  absl::StatusOr<std::unique_ptr<LoadedModel>> loaded = loader_.Run(job);
  mu_.Lock();
  return loaded;
}

absl::Status ModelRepository::UnloadVersion(const std::string& id,
                                            int64_t number,
                                            const std::string& reason) {
  const Version served = catalog_.Get(id, number);
  const absl::StatusOr<Version> listed = catalog_.Unload(id, number, reason);
  if (!listed.ok()) return listed.status();
  plans_[id].Unloaded(number);
  if (served != nullptr && served->state() == ModelState::kReady) {
    loader_.KeepTimes(*served);
    log_.Info(LogModule::kModels, "model is unloaded",
              {{"model", (*listed)->name()}});
  }
  changed_(**listed);
  return absl::OkStatus();
}

}  // namespace sfmamba::repository
