#include "server/admin/runtime_settings.h"

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/base/reasons.h"

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
  absl::MutexLock lock(&mu_);
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

v1::RuntimeSettings RuntimeSettings::Get() const {
  absl::MutexLock lock(&mu_);
  return settings_;
}

}  // namespace sfmamba::admin
