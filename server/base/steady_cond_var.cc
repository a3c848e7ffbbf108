#include "server/base/steady_cond_var.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

namespace sfmamba::server {
namespace {

// Longer waits end without a reason: they would pass the end of the clock.
constexpr absl::Duration kLongest = absl::Hours(24);

// The kernel waits on the number itself (futex(2)): one call for a wait and one
// for its signal, where libc's condition variable takes two locks and up to
// three calls.
static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t), "a futex");

}  // namespace

void SteadyCondVar::Wait(absl::Mutex* mu) { WaitWithTimeout(mu, kLongest); }

void SteadyCondVar::WaitWithTimeout(absl::Mutex* mu, absl::Duration timeout)
    ABSL_NO_THREAD_SAFETY_ANALYSIS {
  timespec end;
  clock_gettime(CLOCK_MONOTONIC, &end);
  end = absl::ToTimespec(absl::DurationFromTimespec(end) +
                         std::clamp(timeout, absl::ZeroDuration(), kLongest));
  const uint32_t seen = signals_.load();
  ++waiting_;
  mu->Unlock();
  syscall(SYS_futex, &signals_, FUTEX_WAIT_BITSET_PRIVATE, seen, &end, nullptr,
          FUTEX_BITSET_MATCH_ANY);
  --waiting_;
  mu->Lock();
}

void SteadyCondVar::SignalAll() { Wake(std::numeric_limits<int>::max()); }

void SteadyCondVar::Wake(int waiters) {
  ++signals_;
  // Whoever has given the mutex back is counted by then.
  if (waiting_.load() == 0) return;
  syscall(SYS_futex, &signals_, FUTEX_WAKE_PRIVATE, waiters, nullptr, nullptr,
          0);
}

}  // namespace sfmamba::server
