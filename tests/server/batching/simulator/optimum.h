#ifndef SFMAMBA_TESTS_SERVER_BATCHING_SIMULATOR_OPTIMUM_H_
#define SFMAMBA_TESTS_SERVER_BATCHING_SIMULATOR_OPTIMUM_H_

#include <vector>

#include "tests/server/batching/simulator/simulator.h"
#include "tests/server/batching/simulator/trace.h"

namespace sfmamba::batching {

// Returns how many requests one device can answer in time at best, if it knows
// all arrivals beforehand. Tries every way to form batches, so the trace must
// be short. For 7 requests, the search takes milliseconds.
int Optimum(const SimulatedModel& model,
            const std::vector<SimulatedRequest>& trace);

// Does the same as Optimum(), but only for requests of one key with the same
// deadline. The trace may have thousands of requests. Each batch takes exactly
// the time of `model`.
int OptimumOfOneSize(const SimulatedModel& model,
                     const std::vector<SimulatedRequest>& trace);

// Returns how many requests a server without batching answers in time. The
// server computes images in order of arrival, exactly `capacity` images per
// second. It refuses requests that would be late.
int InTimeOneByOne(double capacity, const std::vector<SimulatedRequest>& trace);

}  // namespace sfmamba::batching

#endif  // SFMAMBA_TESTS_SERVER_BATCHING_SIMULATOR_OPTIMUM_H_
