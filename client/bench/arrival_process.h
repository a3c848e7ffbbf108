#ifndef SFMAMBA_CLIENT_BENCH_ARRIVAL_PROCESS_H_
#define SFMAMBA_CLIENT_BENCH_ARRIVAL_PROCESS_H_

#include <cmath>
#include <cstdint>
#include <random>

#include "absl/time/time.h"

namespace sfmamba::client {

struct ArrivalOptions {
  double rate = 0;  // Mean requests per second. Must be > 0 for ArrivalProcess.
  uint64_t seed = 1;  // Equal seeds give equal arrivals.
  // If above 1, requests arrive in bursts. Each period begins with a burst at
  // `burst_factor` times the rate, which lasts 1 / burst_factor of the period.
  // Nothing arrives in the rest of the period. If 1, there are no bursts. Must
  // be at least 1.
  double burst_factor = 1;
  absl::Duration burst_period = absl::Seconds(1);
};

// Computes when the requests of many independent callers arrive. The arrivals
// are a Poisson process, whose rate may alternate between bursts and silence.
class ArrivalProcess {
 public:
  explicit ArrivalProcess(const ArrivalOptions& options)
      : mean_gap_(1 / (options.rate * options.burst_factor)),
        period_(absl::ToDoubleSeconds(options.burst_period)),
        burst_(period_ / options.burst_factor),
        random_(options.seed) {}

  // Returns the time of the next arrival, counted from the start.
  absl::Duration Next() {
    // Uniform in [0, 1), from the upper 53 bits. Unlike
    // std::exponential_distribution, this computation has equal results on
    // every platform.
    const double uniform =
        std::ldexp(static_cast<double>(random_() >> 11), -53);
    busy_time_ += -std::log1p(-uniform) * mean_gap_;
    const double bursts_before = std::floor(busy_time_ / burst_);
    return absl::Seconds(busy_time_ + bursts_before * (period_ - burst_));
  }

 private:
  // The members below are in seconds.
  const double mean_gap_;  // Mean time between two arrivals in a burst.
  const double period_;
  const double burst_;    // Duration of a burst.
  double busy_time_ = 0;  // Time of the last arrival, without silences.
  std::mt19937_64 random_;
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_BENCH_ARRIVAL_PROCESS_H_
