#ifndef SFMAMBA_SERVER_THREADS_STEADY_COND_VAR_H_
#define SFMAMBA_SERVER_THREADS_STEADY_COND_VAR_H_

#include <algorithm>
#include <condition_variable>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/steady_clock.h"

namespace sfmamba::server {

// A condition variable of an absl::Mutex whose waits end by the steady clock.
// Waits of absl::CondVar and absl::Mutex end by the wall clock: if that is set
// back by an hour meanwhile, they take an hour longer. Thread-safe.
class SteadyCondVar {
 public:
  // Wait() and WaitWithTimeout() unlock the mutex while they wait. They return
  // when signalled, WaitWithTimeout() also when the time has passed, and both
  // now and then without a reason.
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

  // Waits until `holds()`, which is called with the mutex locked, is true, or
  // `limit` has passed. Returns whether it is true.
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

  // Wakes one of the waiting threads, or all. Faster without their mutex, which
  // a woken thread waits for.
  void Signal() { changed_.notify_one(); }
  void SignalAll() { changed_.notify_all(); }

 private:
  // Clang does not see that `mu` is the mutex that the predicate requires.
  template <typename Predicate>
  static bool Call(const Predicate& holds) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return holds();
  }

  // The mutex under the names that the standard library calls.
  struct Lock {
    void lock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mu.Lock(); }
    void unlock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mu.Unlock(); }
    absl::Mutex& mu;
  };

  std::condition_variable_any changed_;
};

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_THREADS_STEADY_COND_VAR_H_
