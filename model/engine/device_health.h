#ifndef SFMAMBA_MODEL_ENGINE_DEVICE_HEALTH_H_
#define SFMAMBA_MODEL_ENGINE_DEVICE_HEALTH_H_

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace sfmamba::engine {

// Stores whether one GPU of a model still works. Thread-safe.
class DeviceHealth {
 public:
  // Returns the first failure that was reported, or OK if there was none.
  absl::Status status() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return status_;
  }
  // Reports a permanent failure, or does nothing if `status` is OK.
  void Update(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    status_.Update(status);
  }

 private:
  mutable absl::Mutex mu_;
  absl::Status status_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::engine

#endif  // SFMAMBA_MODEL_ENGINE_DEVICE_HEALTH_H_
