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

// Returns the counter `name` of `model` by the values of `label`, from the
// server's metrics port. Leaves out GetModel, which is also counted for other
// callers.
Counts ServerCounts(int metrics_port, const std::string& name,
                    const std::string& model, const std::string& label);

// Returns a metric of the server, added up over its labels.
double ServerMetric(int metrics_port, const std::string& name);

struct MemorySample {
  double requests;  // So far.
  double resident_bytes;
};

// Returns how many bytes 10,000 requests add, by least squares. Ignores the
// first fifth of the samples. NaN if fewer than two others remain.
double Growth(std::vector<MemorySample> samples);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_E2E_SOAK_SOAK_COUNTS_H_
