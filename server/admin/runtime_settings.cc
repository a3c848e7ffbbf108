#include "server/admin/runtime_settings.h"

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/admin/model_changes.h"
#include "server/errors/reasons.h"
#include "server/settings/setting.h"

namespace sfmamba::admin {

absl::Status RuntimeSettings::Update(
    const v1::UpdateRuntimeSettingsRequest& changes) {
  const absl::StatusOr<observability::LogLevels> levels =
      observability::ParseLogLevels(changes.log_level());
  if (!levels.ok()) {
    return server::InvalidField("log_level", levels.status().message());
  }
  const double ratio = changes.trace_ratio();
  if (!(ratio >= 0 && ratio <= 1)) {
    return server::InvalidField(
        "trace_ratio", absl::StrCat("got ", ratio, ", expected 0 to 1"));
  }
  if (changes.has_trace_ratio() && set_trace_ratio_ == nullptr) {
    return server::NotSupported("tracing");
  }
  // All changes are validated before the first change is applied.
  std::vector<QueueChange> queues;
  for (const v1::QueueLimits& limits : changes.queues()) {
    const absl::Status status = AddChanges(limits, &queues);
    if (!status.ok()) return status;
  }
  absl::MutexLock lock(&mu_);
  for (const auto& [model, limits] : queues) {
    batching::QueueLimits now = model->executor->queue_limits();
    if (limits.max_queue_items() != 0) now.items = limits.max_queue_items();
    if (limits.max_queue_bytes() != 0) now.bytes = limits.max_queue_bytes();
    model->executor->SetQueueLimits(now);
  }
  if (changes.has_log_level()) {
    log_.SetLevels(*levels);
    settings_.set_log_level(changes.log_level().empty() ? "info"
                                                        : changes.log_level());
  }
  if (changes.has_trace_ratio()) {
    set_trace_ratio_(ratio);
    settings_.set_trace_ratio(ratio);
  }
  return absl::OkStatus();
}

absl::Status RuntimeSettings::AddChanges(
    const v1::QueueLimits& limits, std::vector<QueueChange>* changes) const {
  // Copies the limits into a Batching only to check them, because this proto
  // message declares the valid ranges of the limits.
  v1::Batching batching;
  batching.set_max_queue_items(limits.max_queue_items());
  batching.set_max_queue_bytes(limits.max_queue_bytes());
  const absl::Status ranges = server::CheckRanges(batching);
  if (!ranges.ok()) return server::InvalidField("queues", ranges.message());
  const absl::StatusOr<Target> target =
      ParseTarget(limits.model(), "queues.model");
  if (!target.ok()) return target.status();
  const auto found = repository_.Find(limits.model(), "queues.model");
  if (!found.ok()) return found.status();
  bool any = false;
  for (const auto& version : repository_.List()) {
    if (version->id() != target->id ||
        version->number() != target->version.value_or(version->number())) {
      continue;
    }
    auto loaded = version->Loaded();
    if (!loaded.ok()) continue;
    changes->push_back({*std::move(loaded), limits});
    any = true;
  }
  // `limits` names either one version or a whole model. If no version with this
  // name is loaded, returns the error of `*found`, which is the version that
  // Find() selected for the name. The error says why `*found` is not ready.
  return any ? absl::OkStatus() : (*found)->Loaded().status();
}

v1::RuntimeSettings RuntimeSettings::Get() const {
  v1::RuntimeSettings settings;
  {
    absl::MutexLock lock(&mu_);
    settings = settings_;
  }
  for (const auto& version : repository_.List()) {
    const auto loaded = version->Loaded();
    if (!loaded.ok()) continue;
    const batching::QueueLimits limits = (*loaded)->executor->queue_limits();
    v1::QueueLimits* queue = settings.add_queues();
    queue->set_model(version->name());
    queue->set_max_queue_items(static_cast<int32_t>(limits.items));
    queue->set_max_queue_bytes(limits.bytes);
  }
  return settings;
}

}  // namespace sfmamba::admin
