#ifndef SFMAMBA_TESTS_SERVER_BATCHING_SIMULATOR_TRACE_H_
#define SFMAMBA_TESTS_SERVER_BATCHING_SIMULATOR_TRACE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/batching/batch_key.h"
#include "server/shares/priority.h"

// Makes arrivals in virtual time. They do not depend on the answers, and the
// same seed gives the same trace.
namespace sfmamba::batching {

// One image of a request.
struct SimulatedRequest {
  absl::Duration at;  // The time since the start.
  int model = 0;
  BatchKey key;
  absl::Duration deadline = absl::InfiniteDuration();  // Since the arrival.
  server::Priority priority = server::Priority::kNormal;
  std::string client;  // Empty if unknown.
  // If set, the caller sends the image again until the time `until`. The caller
  // pauses for `again` after each answer or refusal.
  std::optional<absl::Duration> again;
  absl::Duration until = absl::InfiniteDuration();
  bool is_new_each_time = false;  // Uses a new client name each time.
};

// A kind of request. `weight` is its relative frequency.
struct RequestKind {
  double weight = 1;
  int model = 0;
  int side = 224;  // Height and width in pixels.
  absl::Duration deadline = absl::InfiniteDuration();
  server::Priority priority = server::Priority::kNormal;
  int clients = 0;  // The number of clients, or 0 if unknown.
};

enum class Arrivals {
  kPoisson,
  // Groups of 16 images, with Poisson arrivals of the groups.
  kBursts,
  // Poisson arrivals in pulses. In the first quarter of each period the rate is
  // four times the mean, and in the rest nothing arrives. The bursts of
  // tools/benchmark_load.py are similar.
  kPulses,
  // Poisson arrivals whose rate alternates between 2.5 times and a quarter of
  // the mean.
  kWaves,
  // Poisson arrivals whose rate is a sine wave between 0.2 and 1.8 times the
  // mean. The trace is one period long.
  kDiurnal,
};

// Returns arrivals for the time `length`, at a mean of `rate` images per
// second. `period` applies only to kPulses.
std::vector<SimulatedRequest> MakeTrace(
    Arrivals arrivals, double rate, absl::Duration length,
    const std::vector<RequestKind>& kinds, uint32_t seed,
    absl::Duration period = absl::Seconds(1));

}  // namespace sfmamba::batching

#endif  // SFMAMBA_TESTS_SERVER_BATCHING_SIMULATOR_TRACE_H_
