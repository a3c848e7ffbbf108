#include "server/base/steady_cond_var.h"

#include <algorithm>
#include <chrono>

namespace sfmamba::server {
namespace {

// Longer waits end without a reason: they would pass the end of the clock.
constexpr absl::Duration kLongest = absl::Hours(24);

// The mutex as the standard library sees one.
class Lockable {
 public:
  explicit Lockable(absl::Mutex* mu) : mu_(mu) {}
  void lock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mu_->Lock(); }
  void unlock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mu_->Unlock(); }

 private:
  absl::Mutex* const mu_;
};

}  // namespace

void SteadyCondVar::Wait(absl::Mutex* mu) {
  Lockable lockable(mu);
  changed_.wait(lockable);
}

void SteadyCondVar::WaitWithTimeout(absl::Mutex* mu, absl::Duration timeout) {
  Lockable lockable(mu);
  changed_.wait_until(
      lockable, std::chrono::steady_clock::now() +
                    absl::ToChronoNanoseconds(std::min(timeout, kLongest)));
}

}  // namespace sfmamba::server
