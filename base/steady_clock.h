#ifndef SFMAMBA_BASE_STEADY_CLOCK_H_
#define SFMAMBA_BASE_STEADY_CLOCK_H_

#include "absl/time/time.h"

namespace sfmamba::base {

// Returns the steady clock's time as an absl::Time with an arbitrary epoch.
// This clock is never set back. Its times must not be compared with wall clock
// times.
absl::Time SteadyNow();

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_STEADY_CLOCK_H_
