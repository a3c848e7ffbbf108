#ifndef SFMAMBA_SERVER_CALL_CANCELLATION_H_
#define SFMAMBA_SERVER_CALL_CANCELLATION_H_

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"

namespace sfmamba::call {

// Calls a callback when a client disconnects. Thread-safe.
class Cancellation {
 public:
  // Registers a callback that Cancel() calls. If Cancel() was already called,
  // calls `cancelled` immediately. `cancelled` is called at most once.
  void OnCancel(absl::AnyInvocable<void()> cancelled) ABSL_LOCKS_EXCLUDED(mu_) {
    {
      absl::MutexLock lock(&mu_);
      if (!is_cancelled_) {
        cancelled_ = std::move(cancelled);
        return;
      }
    }
    cancelled();
  }

  void Cancel() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::AnyInvocable<void()> cancelled;
    {
      absl::MutexLock lock(&mu_);
      is_cancelled_ = true;
      cancelled = std::exchange(cancelled_, nullptr);
    }
    if (cancelled) cancelled();
  }

 private:
  absl::Mutex mu_;
  bool is_cancelled_ ABSL_GUARDED_BY(mu_) = false;
  absl::AnyInvocable<void()> cancelled_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::call

#endif  // SFMAMBA_SERVER_CALL_CANCELLATION_H_
