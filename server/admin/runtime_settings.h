#ifndef SFMAMBA_SERVER_ADMIN_RUNTIME_SETTINGS_H_
#define SFMAMBA_SERVER_ADMIN_RUNTIME_SETTINGS_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/observability/log.h"
#include "server/repository/model_repository.h"
#include "sfmamba/v1/admin.pb.h"

namespace sfmamba::admin {

// Holds the settings that can be changed at runtime. Thread-safe.
class RuntimeSettings {
 public:
  // `settings` are the current settings, without the queue limits. `repository`
  // and `log` must outlive this object. `set_trace_ratio` is null if tracing is
  // off.
  RuntimeSettings(v1::RuntimeSettings settings,
                  const repository::ModelRepository* repository,
                  observability::Logger* log,
                  std::function<void(double)> set_trace_ratio = nullptr)
      : repository_(*repository),
        log_(*log),
        set_trace_ratio_(std::move(set_trace_ratio)),
        settings_(std::move(settings)) {}

  // Applies the settings that are set in `changes`. If one of them cannot be
  // changed, applies none and returns an error that names the field:
  // - INVALID_ARGUMENT: the value is wrong.
  // - UNIMPLEMENTED: tracing is off.
  // - NOT_FOUND or UNAVAILABLE: the model does not exist or is not ready.
  absl::Status Update(const v1::UpdateRuntimeSettingsRequest& changes)
      ABSL_LOCKS_EXCLUDED(mu_);

  v1::RuntimeSettings Get() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct QueueChange {
    std::shared_ptr<repository::LoadedModel> model;
    // The new limits. The value 0 leaves a limit unchanged.
    v1::QueueLimits limits;
  };

  // Appends changes for the model or version that `limits` names. For a model,
  // appends one change for each loaded version. If no version is loaded,
  // returns an error.
  absl::Status AddChanges(const v1::QueueLimits& limits,
                          std::vector<QueueChange>* changes) const;

  const repository::ModelRepository& repository_;
  observability::Logger& log_;
  const std::function<void(double)> set_trace_ratio_;
  mutable absl::Mutex mu_;
  v1::RuntimeSettings settings_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::admin

#endif  // SFMAMBA_SERVER_ADMIN_RUNTIME_SETTINGS_H_
