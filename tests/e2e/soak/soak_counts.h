#ifndef SFMAMBA_TESTS_E2E_SOAK_SOAK_COUNTS_H_
#define SFMAMBA_TESTS_E2E_SOAK_SOAK_COUNTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sfmamba {

// The number of occurrences of each code or outcome.
using Counts = std::map<std::string, int64_t>;

std::string ToText(const Counts& counts);

// Reads the counter `name` of `model` from the server's metrics port. Returns
// its value for each value of `label`. Leaves out the method GetModel, because
// other callers use it too.
Counts ServerCounts(int metrics_port, const std::string& name,
                    const std::string& model, const std::string& label);

// Returns the sum of a metric over all its labels.
double ServerMetric(int metrics_port, const std::string& name);

struct MemorySample {
  double requests;  // The number of requests sent before this sample.
  double resident_bytes;
};

// Returns how many bytes 10,000 requests add to the memory, by a least-squares
// fit. Ignores the first fifth of the samples. Returns NaN if fewer than two
// samples remain.
double Growth(std::vector<MemorySample> samples);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_E2E_SOAK_SOAK_COUNTS_H_
