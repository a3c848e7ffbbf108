#ifndef SFMAMBA_TESTS_SERVER_BATCHING_SIMULATOR_SCENARIOS_H_
#define SFMAMBA_TESTS_SERVER_BATCHING_SIMULATOR_SCENARIOS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/server/batching/simulator/simulator.h"
#include "tests/server/batching/simulator/trace.h"

// The scenarios of the tests and of the table.
namespace sfmamba::batching {

struct Scenario {
  std::string name;
  SimulationOptions options;
  std::vector<RequestKind> kinds;
  absl::Duration length;
  // The period of Arrivals::kPulses, four full batches of the first kind.
  absl::Duration period;
  double capacity = 0;  // Images per second; set below.
};

// Requests of one size. The deadline is `deadline_batches` times a full batch.
Scenario CpuClassifier(double deadline_batches);
Scenario GpuClassifier(double deadline_batches);
// Batching saves no time.
Scenario CpuDense(double deadline_batches);
// Six sizes, with deadlines of 4 to 10 batches.
Scenario CpuMixed();
// The sizes of CpuMixed() on four devices, with 30,000 images per second.
Scenario GpuMixed();
// Three models share four devices. One model is dense.
Scenario SeveralModels();

// Returns arrivals at `load` times the scenario's capacity.
std::vector<SimulatedRequest> TraceOf(const Scenario& scenario,
                                      Arrivals arrivals, double load,
                                      uint32_t seed = 1);

// Return the scenario's options in `mode`, or with FixedQueue.
SimulationOptions InMode(const Scenario& scenario, BatchMode mode);
SimulationOptions Fixed(const Scenario& scenario);

}  // namespace sfmamba::batching

#endif  // SFMAMBA_TESTS_SERVER_BATCHING_SIMULATOR_SCENARIOS_H_
