// Prints the goodput as CSV, for each scenario, kind of arrivals, load and
// mode:
//   bazel run //tests/server/batching/simulator:simulate

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "tests/server/batching/simulator/optimum.h"
#include "tests/server/batching/simulator/scenarios.h"

namespace sfmamba::batching {
namespace {

constexpr double kLoads[] = {0.3, 0.5, 0.7, 0.8, 0.9, 1.0, 1.2, 1.5, 2, 4, 10};
constexpr std::pair<Arrivals, const char*> kArrivals[] = {
    {Arrivals::kPoisson, "poisson"},
    {Arrivals::kBursts, "bursts"},
    {Arrivals::kPulses, "pulses"},
    {Arrivals::kWaves, "waves"},
    {Arrivals::kDiurnal, "diurnal"}};

void Print(const char* name, const Scenario& scenario) {
  const std::pair<SimulationOptions, const char*> modes[] = {
      {Fixed(scenario), "fixed"},
      {InMode(scenario, BatchMode::kThroughput), "throughput"},
      {InMode(scenario, BatchMode::kLatency), "latency"}};
  for (const auto& [arrivals, arrivals_name] : kArrivals) {
    for (const double load : kLoads) {
      const std::vector<SimulatedRequest> trace =
          TraceOf(scenario, arrivals, load);
      const double one_by_one =
          double(InTimeOneByOne(scenario.capacity, trace)) /
          std::max<size_t>(1, trace.size());
      for (const auto& [mode, mode_name] : modes) {
        const SimulationResult result = Simulate(mode, trace);
        const double seconds = absl::ToDoubleSeconds(scenario.length);
        std::printf(
            "%s,%s,%.1f,%s,%.0f,%.3f,%.3f,%.3f,%.3f,%.4f,%.3f,%.3f,%.2f,%.1f\n",
            name, arrivals_name, load, mode_name, result.in_time / seconds,
            result.in_time / seconds / scenario.capacity,
            absl::ToDoubleSeconds(result.useful) / seconds /
                scenario.options.devices,
            result.goodput(), one_by_one, result.wasted(),
            double(result.refused) / result.offered,
            double(result.dropped) / result.offered,
            double(result.late + result.in_time) / result.batches,
            absl::ToDoubleMilliseconds(result.latency));
      }
    }
  }
}

}  // namespace
}  // namespace sfmamba::batching

int main() {
  using namespace sfmamba::batching;
  std::printf(
      "scenario,arrivals,load,mode,images_per_second,part_of_capacity,"
      "useful,part_of_offered,one_by_one,wasted,refused,dropped,batch,latency_"
      "ms\n");
  Print("cpu_10_batches", CpuClassifier(10));
  Print("cpu_2_batches", CpuClassifier(2));
  Print("gpu_10_batches", GpuClassifier(10));
  Print("gpu_2_batches", GpuClassifier(2));
  Print("dense_10_batches", CpuDense(10));
  Print("cpu_mixed", CpuMixed());
  Print("gpu_mixed", GpuMixed());
  Print("models", SeveralModels());
}
