#ifndef SFMAMBA_CLIENT_BENCH_POISSON_ARRIVALS_H_
#define SFMAMBA_CLIENT_BENCH_POISSON_ARRIVALS_H_

#include <cmath>
#include <cstdint>
#include <random>

#include "absl/time/time.h"

namespace sfmamba::client {

// When the requests of many independent callers arrive: a Poisson process, the
// same for the same seed.
class PoissonArrivals {
 public:
  PoissonArrivals(double per_second, uint64_t seed)
      : mean_gap_(absl::Seconds(1 / per_second)), random_(seed) {}

  // The time of the next arrival since the start.
  absl::Duration Next() {
    // Uniform in [0, 1) by the upper 53 bits; the same on every platform, which
    // std::exponential_distribution is not.
    const double uniform =
        std::ldexp(static_cast<double>(random_() >> 11), -53);
    now_ += -std::log1p(-uniform) * mean_gap_;
    return now_;
  }

 private:
  const absl::Duration mean_gap_;
  std::mt19937_64 random_;
  absl::Duration now_ = absl::ZeroDuration();
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_BENCH_POISSON_ARRIVALS_H_
