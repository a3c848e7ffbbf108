#ifndef SFMAMBA_SERVER_BASE_STEADY_AWAIT_H_
#define SFMAMBA_SERVER_BASE_STEADY_AWAIT_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace sfmamba::server {

// Waits until `condition` is true, for `limit` at most by the steady clock, and
// returns whether it is true. `mu` is given back meanwhile. As
// absl::Mutex::AwaitWithTimeout(), which ends by the wall clock: if that is set
// back by an hour meanwhile, it takes an hour longer.
//
// It looks at the condition every few milliseconds: for waits at the end of
// something, not for those on the way of a request.
bool SteadyAwait(absl::Mutex* mu, const absl::Condition& condition,
                 absl::Duration limit) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_BASE_STEADY_AWAIT_H_
