#ifndef SFMAMBA_TESTS_SERVER_BATCHING_SIMULATOR_SCENARIOS_H_
#define SFMAMBA_TESTS_SERVER_BATCHING_SIMULATOR_SCENARIOS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/server/batching/simulator/simulator.h"
#include "tests/server/batching/simulator/trace.h"

// The scenarios of the tests and of the table in docs/serving.md.
namespace sfmamba::batching {

struct Scenario {
  std::string name;
  SimulationOptions options;
  std::vector<RequestKind> kinds;
  absl::Duration length;
  // The period of Arrivals::kPulses. It is the duration of four full batches of
  // the first of `kinds`.
  absl::Duration period;
  double capacity = 0;  // Images per second.
};

// Return scenarios with requests of one size. The deadline is
// `deadline_batches` times the duration of a full batch.
Scenario CpuClassifier(double deadline_batches);
Scenario GpuClassifier(double deadline_batches);
// Returns a scenario in which batching saves no time.
Scenario CpuDense(double deadline_batches);
// Returns a scenario with six image sizes. Deadlines are 4 to 10 times the
// duration of a full batch.
Scenario CpuMixed();
// Returns a scenario with the sizes of CpuMixed() on four devices, which
// compute 30,000 images per second.
Scenario GpuMixed();
// Returns a scenario in which three models share four devices. For one of the
// models, batching saves no time.
Scenario SeveralModels();

// Returns arrivals at `load` times the scenario's capacity.
std::vector<SimulatedRequest> TraceOf(const Scenario& scenario,
                                      Arrivals arrivals, double load,
                                      uint32_t seed = 1);

// Return the options of the scenario, with `mode` or with FixedQueue.
SimulationOptions InMode(const Scenario& scenario, BatchMode mode);
SimulationOptions Fixed(const Scenario& scenario);

}  // namespace sfmamba::batching

#endif  // SFMAMBA_TESTS_SERVER_BATCHING_SIMULATOR_SCENARIOS_H_
