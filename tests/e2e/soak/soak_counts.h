#ifndef SFMAMBA_TESTS_E2E_SOAK_SOAK_COUNTS_H_
#define SFMAMBA_TESTS_E2E_SOAK_SOAK_COUNTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sfmamba {

// Codes or outcomes by name, with how often each was seen.
using Counts = std::map<std::string, int64_t>;

std::string ToText(const Counts& counts);

// The counter `name` of the server with this port for metrics, of `model`, by
// the values of `label`. GetModel is left out: it is counted for those who ask,
// too.
Counts ServerCounts(int metrics_port, const std::string& name,
                    const std::string& model, const std::string& label);

// A metric of the server, added up over its labels.
double ServerMetric(int metrics_port, const std::string& name);

struct MemorySample {
  double requests;  // So far.
  double resident_bytes;
};

// How many bytes 10,000 requests added, by least squares over all samples but
// the first fifth. NaN if there are fewer than two others.
double Growth(std::vector<MemorySample> samples);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_E2E_SOAK_SOAK_COUNTS_H_
