#ifndef SFMAMBA_SERVER_ADMIN_RUNTIME_SETTINGS_H_
#define SFMAMBA_SERVER_ADMIN_RUNTIME_SETTINGS_H_

#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/observability/log.h"
#include "sfmamba/v1/admin.pb.h"

namespace sfmamba::admin {

// The settings that can be changed while the server runs. Thread-safe.
class RuntimeSettings {
 public:
  // `settings` are those that hold now. `log` outlives this. `set_trace_ratio`
  // is null where nothing is traced.
  RuntimeSettings(v1::RuntimeSettings settings, observability::Logger* log,
                  std::function<void(double)> set_trace_ratio = nullptr)
      : log_(*log),
        set_trace_ratio_(std::move(set_trace_ratio)),
        settings_(std::move(settings)) {}

  // Changes what is set in `changes`, or nothing: INVALID_ARGUMENT names the
  // field that is wrong, UNIMPLEMENTED what cannot be changed.
  absl::Status Update(const v1::UpdateRuntimeSettingsRequest& changes)
      ABSL_LOCKS_EXCLUDED(mu_);

  v1::RuntimeSettings Get() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  observability::Logger& log_;
  const std::function<void(double)> set_trace_ratio_;
  mutable absl::Mutex mu_;
  v1::RuntimeSettings settings_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::admin

#endif  // SFMAMBA_SERVER_ADMIN_RUNTIME_SETTINGS_H_
