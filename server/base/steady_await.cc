#include "server/base/steady_await.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "base/steady_clock.h"

namespace sfmamba::server {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(2);

}  // namespace

bool SteadyAwait(absl::Mutex* mu, const absl::Condition& condition,
                 absl::Duration limit) {
  if (limit == absl::InfiniteDuration()) {
    mu->Await(condition);
    return true;
  }
  const absl::Time end = base::SteadyNow() + limit;
  while (!condition.Eval()) {
    const absl::Duration left = end - base::SteadyNow();
    if (left <= absl::ZeroDuration()) return false;
    mu->Unlock();
    absl::SleepFor(std::min(left, kLook));
    mu->Lock();
  }
  return true;
}

}  // namespace sfmamba::server
