#ifndef SFMAMBA_SERVER_BASE_STEADY_COND_VAR_H_
#define SFMAMBA_SERVER_BASE_STEADY_COND_VAR_H_

#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace sfmamba::server {

// A condition variable of an absl::Mutex whose waits end by the steady clock.
// Those of absl::CondVar end by the wall clock: if that is set back by an hour
// meanwhile, they take an hour longer. Thread-safe.
class SteadyCondVar {
 public:
  // Both give the mutex back while they wait. They return when signalled,
  // WaitWithTimeout() also when the time has passed, and both now and then
  // without a reason.
  void Wait(absl::Mutex* mu) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  void WaitWithTimeout(absl::Mutex* mu, absl::Duration timeout)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);

  // Wakes one of those who wait, or all. It is faster without their mutex: who
  // is woken waits for it.
  void Signal() { Wake(1); }
  void SignalAll();

 private:
  void Wake(int waiters);

  // How often it was signalled: the kernel lets nobody wait who has seen a
  // number that is no longer it.
  std::atomic<uint32_t> signals_{0};
  std::atomic<int> waiting_{0};
};

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_BASE_STEADY_COND_VAR_H_
