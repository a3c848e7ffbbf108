#ifndef SFMAMBA_TESTS_SERVER_BATCHING_SIMULATOR_SCENARIOS_H_
#define SFMAMBA_TESTS_SERVER_BATCHING_SIMULATOR_SCENARIOS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/server/batching/simulator/simulator.h"
#include "tests/server/batching/simulator/trace.h"

// What tests and the table simulate.
namespace sfmamba::batching {

struct Scenario {
  std::string name;
  SimulationOptions options;
  std::vector<RequestKind> kinds;
  absl::Duration length;
  // Period of Arrivals::kPulses: four full batches of the first kind.
  absl::Duration period;
  double capacity = 0;  // Images a second. Set by the functions below.
};

// One size; the deadline is `deadline_batches` times a full batch.
Scenario CpuClassifier(double deadline_batches);
Scenario GpuClassifier(double deadline_batches);
// Batches take as long as their images would one by one.
Scenario CpuDense(double deadline_batches);
// Six sizes and deadlines of 4 to 10 batches.
Scenario CpuMixed();
// CpuMixed()'s sizes on four devices, 30,000 images a second.
Scenario GpuMixed();
// Three models, one of them dense, share four devices.
Scenario SeveralModels();

// Arrivals at `load` times the scenario's capacity.
std::vector<SimulatedRequest> TraceOf(const Scenario& scenario,
                                      Arrivals arrivals, double load,
                                      uint32_t seed = 1);

// A scenario's options in `mode`, and with FixedQueue.
SimulationOptions InMode(const Scenario& scenario, BatchMode mode);
SimulationOptions Fixed(const Scenario& scenario);

}  // namespace sfmamba::batching

#endif  // SFMAMBA_TESTS_SERVER_BATCHING_SIMULATOR_SCENARIOS_H_
