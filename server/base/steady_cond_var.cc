#include "server/base/steady_cond_var.h"

#include <algorithm>
#include <chrono>

namespace sfmamba::server {
namespace {

// Longer waits end without a reason: they would pass the end of the clock.
constexpr absl::Duration kLongest = absl::Hours(24);

}  // namespace

void SteadyCondVar::Wait(absl::Mutex* mu) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  std::unique_lock<std::mutex> lock(mu_);
  mu->Unlock();
  changed_.wait(lock);
  lock.unlock();
  mu->Lock();
}

void SteadyCondVar::WaitWithTimeout(absl::Mutex* mu, absl::Duration timeout)
    ABSL_NO_THREAD_SAFETY_ANALYSIS {
  const auto end = std::chrono::steady_clock::now() +
                   absl::ToChronoNanoseconds(std::min(timeout, kLongest));
  std::unique_lock<std::mutex> lock(mu_);
  mu->Unlock();
  changed_.wait_until(lock, end);
  lock.unlock();
  mu->Lock();
}

void SteadyCondVar::Signal() {
  // Whoever has given the mutex back waits by then.
  { std::lock_guard<std::mutex> lock(mu_); }
  changed_.notify_one();
}

void SteadyCondVar::SignalAll() {
  { std::lock_guard<std::mutex> lock(mu_); }
  changed_.notify_all();
}

}  // namespace sfmamba::server
