#ifndef SFMAMBA_TESTS_SERVER_BATCHING_SIMULATOR_TRACE_H_
#define SFMAMBA_TESTS_SERVER_BATCHING_SIMULATOR_TRACE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/batching/batch_key.h"
#include "server/shares/priority.h"

// Open-loop arrivals in virtual time. The same seed gives the same trace.
namespace sfmamba::batching {

// One image of a request.
struct SimulatedRequest {
  absl::Duration at;  // Since the start.
  int model = 0;
  BatchKey key;
  absl::Duration deadline = absl::InfiniteDuration();  // Since the arrival.
  server::Priority priority = server::Priority::kNormal;
  std::string client;  // Empty if unknown.
  // If set, the caller sends the image again until the time `until`. It pauses
  // for this long after each answer or loss.
  std::optional<absl::Duration> again;
  absl::Duration until = absl::InfiniteDuration();
  bool is_new_each_time = false;  // Changes its client's name each time.
};

// A kind of request and its frequency.
struct RequestKind {
  double weight = 1;
  int model = 0;
  int side = 224;  // Height and width in pixels.
  absl::Duration deadline = absl::InfiniteDuration();
  server::Priority priority = server::Priority::kNormal;
  int clients = 0;  // The number of clients; 0 if unknown.
};

enum class Arrivals {
  kPoisson,
  // Poisson arrivals, each of 16 images together.
  kBursts,
  // Poisson arrivals at four times the rate in the first quarter of each
  // period, then none, like the bursts of tools/benchmark_load.py.
  kPulses,
  // Poisson arrivals, alternating between 2.5 times and a quarter of the rate.
  kWaves,
  // Poisson arrivals whose rate is a sine wave between 0.2 and 1.8 times the
  // mean. The trace is one period long.
  kDiurnal,
};

// Returns arrivals over `length` at `rate` images per second on average.
// `period` applies to kPulses.
std::vector<SimulatedRequest> MakeTrace(
    Arrivals arrivals, double rate, absl::Duration length,
    const std::vector<RequestKind>& kinds, uint32_t seed,
    absl::Duration period = absl::Seconds(1));

}  // namespace sfmamba::batching

#endif  // SFMAMBA_TESTS_SERVER_BATCHING_SIMULATOR_TRACE_H_
