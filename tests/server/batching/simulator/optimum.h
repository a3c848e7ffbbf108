#ifndef SFMAMBA_TESTS_SERVER_BATCHING_SIMULATOR_OPTIMUM_H_
#define SFMAMBA_TESTS_SERVER_BATCHING_SIMULATOR_OPTIMUM_H_

#include <vector>

#include "tests/server/batching/simulator/simulator.h"
#include "tests/server/batching/simulator/trace.h"

namespace sfmamba::batching {

// Returns how many requests one device can answer in time at best, if it knows
// all arrivals beforehand. It tries every way to batch them, so the trace must
// be short. 7 requests take milliseconds.
int Optimum(const SimulatedModel& model,
            const std::vector<SimulatedRequest>& trace);

// Optimum() for requests of one key with the same deadline. The trace may have
// thousands of requests. The device must never be slower than `model`.
int OptimumOfOneSize(const SimulatedModel& model,
                     const std::vector<SimulatedRequest>& trace);

// Returns how many requests a server without batching answers in time. It
// computes images in order of arrival without noise, `capacity` images per
// second. It refuses requests that would be late.
int InTimeOneByOne(double capacity, const std::vector<SimulatedRequest>& trace);

}  // namespace sfmamba::batching

#endif  // SFMAMBA_TESTS_SERVER_BATCHING_SIMULATOR_OPTIMUM_H_
