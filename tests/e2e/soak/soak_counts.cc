#include "tests/e2e/soak/soak_counts.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/testing/http.h"

namespace sfmamba {

std::string ToText(const Counts& counts) {
  std::string text;
  for (const auto& [name, count] : counts) {
    absl::StrAppend(&text, " ", name, " ", count);
  }
  return text.empty() ? " none" : text;
}

Counts ServerCounts(int metrics_port, const std::string& name,
                    const std::string& model, const std::string& label) {
  Counts counts;
  const std::string before = absl::StrCat(label, "=\"");
  for (const auto& [series, count] :
       Samples(HttpGet(metrics_port, "/metrics"))) {
    if (count == 0 || !absl::StartsWith(series, name + "{") ||
        !absl::StrContains(series, absl::StrCat("model=\"", model, "\"")) ||
        absl::StrContains(series, "method=\"GetModel\"")) {
      continue;
    }
    const size_t begin = series.find(before) + before.size();
    counts[series.substr(begin, series.find('"', begin) - begin)] +=
        std::lround(count);
  }
  return counts;
}

double ServerMetric(int metrics_port, const std::string& name) {
  return SumOf(Samples(HttpGet(metrics_port, "/metrics")), name, {});
}

double Growth(std::vector<MemorySample> samples) {
  std::sort(samples.begin(), samples.end(),
            [](const MemorySample& a, const MemorySample& b) {
              return a.requests < b.requests;
            });
  samples.erase(samples.begin(), samples.begin() + samples.size() / 5);
  if (samples.size() < 2) return std::numeric_limits<double>::quiet_NaN();
  double n = samples.size(), x = 0, y = 0, xx = 0, xy = 0;
  for (const MemorySample& sample : samples) {
    x += sample.requests;
    y += sample.resident_bytes;
    xx += sample.requests * sample.requests;
    xy += sample.requests * sample.resident_bytes;
  }
  return 10000 * (n * xy - x * y) / (n * xx - x * x);
}

}  // namespace sfmamba
