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

// The settings that can be changed while the server runs. Thread-safe.
class RuntimeSettings {
 public:
  // `settings` are the current ones, without the queues. `repository` and `log`
  // outlive this. `set_trace_ratio` is null if tracing is off.
  RuntimeSettings(v1::RuntimeSettings settings,
                  const repository::ModelRepository* repository,
                  observability::Logger* log,
                  std::function<void(double)> set_trace_ratio = nullptr)
      : repository_(*repository),
        log_(*log),
        set_trace_ratio_(std::move(set_trace_ratio)),
        settings_(std::move(settings)) {}

  // Changes the settings that `changes` sets. If one cannot be changed, no
  // setting changes, and the error names the field: INVALID_ARGUMENT for a
  // wrong value, UNIMPLEMENTED if tracing is off, NOT_FOUND or UNAVAILABLE for
  // a model.
  absl::Status Update(const v1::UpdateRuntimeSettingsRequest& changes)
      ABSL_LOCKS_EXCLUDED(mu_);

  v1::RuntimeSettings Get() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct QueueChange {
    std::shared_ptr<repository::LoadedModel> model;
    v1::QueueLimits limits;  // 0: unchanged.
  };

  // Adds a change for each version that `limits` names.
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
