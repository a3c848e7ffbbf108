#include "tests/server/batching/simulator/trace.h"

#include <cmath>
#include <random>
#include <string>

namespace sfmamba::batching {
namespace {

// The rate is 2.5 times the mean for one third of the time, and a quarter of
// the mean for two thirds.
constexpr double kHighPart = 1.0 / 3;
constexpr double kHighRate = 2.5;
constexpr double kLowRate = 0.25;
constexpr int kWaves = 20;  // The waves of a trace.
constexpr int kBurst = 16;  // The images of a burst.
constexpr double kSwing = 0.8;
constexpr double kPulse = 4;  // The rate in a pulse, relative to the mean.
constexpr double kHighestRate = 2.5;  // The highest rate without pulses.

// Returns the current rate divided by the mean rate. `part` is the elapsed
// fraction of the trace, and `periods` is the number of elapsed periods.
double RateAt(Arrivals arrivals, double part, double periods) {
  switch (arrivals) {
    case Arrivals::kPoisson:
    case Arrivals::kBursts:
      return 1;
    case Arrivals::kPulses:
      return periods - std::floor(periods) < 1 / kPulse ? kPulse : 0;
    case Arrivals::kWaves: {
      const double phase = part * kWaves - std::floor(part * kWaves);
      return phase < kHighPart ? kHighRate : kLowRate;
    }
    case Arrivals::kDiurnal:
      return 1 - kSwing * std::cos(2 * M_PI * part);
  }
  return 1;
}

}  // namespace

std::vector<SimulatedRequest> MakeTrace(Arrivals arrivals, double rate,
                                        absl::Duration length,
                                        const std::vector<RequestKind>& kinds,
                                        uint32_t seed, absl::Duration period) {
  std::mt19937 random(seed);
  const int together = arrivals == Arrivals::kBursts ? kBurst : 1;
  const double highest = arrivals == Arrivals::kPulses ? kPulse : kHighestRate;
  // Clients are chosen with a separate generator, so that the arrivals do not
  // depend on them.
  std::mt19937 clients(seed);
  std::exponential_distribution<double> gap(rate * highest / together);
  std::uniform_real_distribution<double> keep(0, highest);
  std::vector<double> weights;
  for (const RequestKind& kind : kinds) weights.push_back(kind.weight);
  std::discrete_distribution<int> pick(weights.begin(), weights.end());

  std::vector<SimulatedRequest> trace;
  const double seconds = absl::ToDoubleSeconds(length);
  for (double at = gap(random); at < seconds; at += gap(random)) {
    // Arrivals are first drawn at the highest rate. Each arrival is then kept
    // with the probability current rate / highest rate.
    const double periods = at / absl::ToDoubleSeconds(period);
    if (keep(random) > RateAt(arrivals, at / seconds, periods)) continue;
    for (int i = 0; i < together; ++i) {
      const RequestKind& kind = kinds[pick(random)];
      SimulatedRequest request;
      request.at = absl::Seconds(at);
      request.model = kind.model;
      request.key = {kind.side, kind.side};
      request.deadline = kind.deadline;
      request.priority = kind.priority;
      if (kind.clients > 0) {
        request.client = std::to_string(clients() % kind.clients);
      }
      trace.push_back(request);
    }
  }
  return trace;
}

}  // namespace sfmamba::batching
