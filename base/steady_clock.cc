#include "base/steady_clock.h"

#include <chrono>

namespace sfmamba::base {

absl::Time SteadyNow() {
  return absl::UnixEpoch() +
         absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace sfmamba::base
