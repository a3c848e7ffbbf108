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
  std::string client;  // Empty: unknown.
  // If set, the caller pauses for this long after each answer or loss, then
  // sends the image again, until the time `until`.
  std::optional<absl::Duration> again;
  absl::Duration until = absl::InfiniteDuration();
  bool is_new_each_time = false;  // Its client has another name each time.
};

// A kind of request and how frequent it is among all.
struct RequestKind {
  double weight = 1;
  int model = 0;
  int side = 224;  // Pixels, height and width.
  absl::Duration deadline = absl::InfiniteDuration();
  server::Priority priority = server::Priority::kNormal;
  int clients = 0;  // How many send it; 0: they are unknown.
};

enum class Arrivals {
  kPoisson,
  // Poisson, but 16 images arrive together.
  kBursts,
  // Poisson at four times the rate for the first quarter of each period, then
  // nothing, as tools/benchmark_load.py sends bursts.
  kPulses,
  // Poisson, alternately at 2.5 times the rate and at a quarter of it.
  kWaves,
  // Poisson, the rate a sine wave between 0.2 and 1.8 times the mean, one
  // period in the whole trace.
  kDiurnal,
};

// Arrivals over `length` at `rate` images a second on average. `period` is that
// of kPulses.
std::vector<SimulatedRequest> MakeTrace(
    Arrivals arrivals, double rate, absl::Duration length,
    const std::vector<RequestKind>& kinds, uint32_t seed,
    absl::Duration period = absl::Seconds(1));

}  // namespace sfmamba::batching

#endif  // SFMAMBA_TESTS_SERVER_BATCHING_SIMULATOR_TRACE_H_
