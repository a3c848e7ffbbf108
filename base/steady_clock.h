#ifndef SFMAMBA_BASE_STEADY_CLOCK_H_
#define SFMAMBA_BASE_STEADY_CLOCK_H_

#include "absl/time/time.h"

namespace sfmamba::base {

// The steady clock as an absl::Time of an arbitrary epoch: never set back, not
// to be compared with wall clocks.
absl::Time SteadyNow();

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_STEADY_CLOCK_H_
