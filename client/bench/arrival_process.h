#ifndef SFMAMBA_CLIENT_BENCH_ARRIVAL_PROCESS_H_
#define SFMAMBA_CLIENT_BENCH_ARRIVAL_PROCESS_H_

#include <cmath>
#include <cstdint>
#include <random>

#include "absl/time/time.h"

namespace sfmamba::client {

struct ArrivalOptions {
  double rate = 0;    // Requests per second on average; > 0 to draw arrivals.
  uint64_t seed = 1;  // Equal seeds give equal arrivals.
  // At least 1. Each period begins with a burst at `burst_factor` times the
  // rate, which lasts 1 / burst_factor of the period; then nothing arrives
  // until the period ends. 1: no bursts.
  double burst_factor = 1;
  absl::Duration burst_period = absl::Seconds(1);
};

// When the requests of many independent callers arrive: a Poisson process,
// whose rate may alternate between bursts and silence.
class ArrivalProcess {
 public:
  explicit ArrivalProcess(const ArrivalOptions& options)
      : mean_gap_(1 / (options.rate * options.burst_factor)),
        period_(absl::ToDoubleSeconds(options.burst_period)),
        burst_(period_ / options.burst_factor),
        random_(options.seed) {}

  // The time of the next arrival since the start.
  absl::Duration Next() {
    // Uniform in [0, 1) by the upper 53 bits; the same on every platform, which
    // std::exponential_distribution is not.
    const double uniform =
        std::ldexp(static_cast<double>(random_() >> 11), -53);
    busy_time_ += -std::log1p(-uniform) * mean_gap_;
    const double bursts_before = std::floor(busy_time_ / burst_);
    return absl::Seconds(busy_time_ + bursts_before * (period_ - burst_));
  }

 private:
  // In seconds.
  const double mean_gap_;  // Within a burst.
  const double period_;
  const double burst_;    // How long a burst lasts.
  double busy_time_ = 0;  // Last arrival, counting only the time in bursts.
  std::mt19937_64 random_;
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_BENCH_ARRIVAL_PROCESS_H_
