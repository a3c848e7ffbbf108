#ifndef SFMAMBA_SERVER_THREADS_STEADY_COND_VAR_H_
#define SFMAMBA_SERVER_THREADS_STEADY_COND_VAR_H_

#include <algorithm>
#include <condition_variable>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/steady_clock.h"

namespace sfmamba::server {

// A condition variable for absl::Mutex whose timeouts use the steady clock.
// Timeouts of absl::CondVar and absl::Mutex use the wall clock. If somebody
// sets the wall clock back by an hour, such a timeout takes an hour longer.
// Thread-safe.
class SteadyCondVar {
 public:
  // Wait() and WaitWithTimeout() unlock the mutex while they wait for a signal.
  // Both methods may also return without a signal. WaitWithTimeout() also
  // returns when the timeout has passed.
  void Wait(absl::Mutex* mu) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    Lock lock{*mu};
    changed_.wait(lock);
  }
  void WaitWithTimeout(absl::Mutex* mu, absl::Duration timeout)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    Lock lock{*mu};
    changed_.wait_for(
        lock, absl::ToChronoNanoseconds(
                  std::clamp(timeout, absl::ZeroDuration(), absl::Hours(24))));
  }

  // Waits until `holds()` returns true or `limit` has passed. `holds` is called
  // with the mutex locked. Returns the last result of `holds()`.
  template <typename Predicate>
  bool Await(absl::Mutex* mu, absl::Duration limit, const Predicate& holds)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    const absl::Time end = base::SteadyNow() + limit;
    while (!Call(holds)) {
      const absl::Duration left = end - base::SteadyNow();
      if (left <= absl::ZeroDuration()) return false;
      WaitWithTimeout(mu, left);
    }
    return true;
  }

  // Signal() wakes one waiting thread, and SignalAll() wakes all of them. Both
  // are faster if the caller does not hold the mutex, because a woken thread
  // must lock the mutex.
  void Signal() { changed_.notify_one(); }
  void SignalAll() { changed_.notify_all(); }

 private:
  // Calls `holds` without Clang's thread safety analysis. The analysis does not
  // see that Await() holds the mutex that `holds` needs.
  template <typename Predicate>
  static bool Call(const Predicate& holds) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return holds();
  }

  // Gives the mutex the method names that the standard library expects.
  struct Lock {
    void lock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mu.Lock(); }
    void unlock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mu.Unlock(); }
    absl::Mutex& mu;
  };

  std::condition_variable_any changed_;
};

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_THREADS_STEADY_COND_VAR_H_
