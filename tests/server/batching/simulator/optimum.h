#ifndef SFMAMBA_TESTS_SERVER_BATCHING_SIMULATOR_OPTIMUM_H_
#define SFMAMBA_TESTS_SERVER_BATCHING_SIMULATOR_OPTIMUM_H_

#include <vector>

#include "tests/server/batching/simulator/simulator.h"
#include "tests/server/batching/simulator/trace.h"

namespace sfmamba::batching {

// How many requests one device can answer in time at best, if it knew all
// arrivals beforehand. It tries every way to batch them, so there must be few:
// 7 take milliseconds.
int Optimum(const SimulatedModel& model,
            const std::vector<SimulatedRequest>& trace);

// Optimum() for requests of one key that all have the same deadline, of which
// there may be thousands, and for a device that is never slower than `model`.
int OptimumOfOneSize(const SimulatedModel& model,
                     const std::vector<SimulatedRequest>& trace);

// How many requests a server answers in time that computes images one by one,
// in the order of their arrival and without noise, `capacity` a second, and
// refuses those that would be late.
int InTimeOneByOne(double capacity, const std::vector<SimulatedRequest>& trace);

}  // namespace sfmamba::batching

#endif  // SFMAMBA_TESTS_SERVER_BATCHING_SIMULATOR_OPTIMUM_H_
