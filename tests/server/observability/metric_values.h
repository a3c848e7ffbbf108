#ifndef SFMAMBA_TESTS_SERVER_OBSERVABILITY_METRIC_VALUES_H_
#define SFMAMBA_TESTS_SERVER_OBSERVABILITY_METRIC_VALUES_H_

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/observability/metrics.h"

namespace sfmamba::observability {

// Returns values by "name{label=value,...}". The value of a histogram is its
// count.
inline std::map<std::string, double> Values(const Metrics& metrics) {
  std::map<std::string, double> values;
  for (const prometheus::MetricFamily& family : metrics.Collect()) {
    for (const prometheus::ClientMetric& metric : family.metric) {
      std::map<std::string, std::string> labels;
      for (const auto& label : metric.label) labels[label.name] = label.value;
      std::string key = family.name + "{";
      for (const auto& [name, value] : labels) {
        absl::StrAppend(&key, key.back() == '{' ? "" : ",", name, "=", value);
      }
      key += "}";
      switch (family.type) {
        case prometheus::MetricType::Counter:
          values[key] = metric.counter.value;
          break;
        case prometheus::MetricType::Histogram:
          values[key] = metric.histogram.sample_count;
          break;
        default:
          values[key] = metric.gauge.value;
      }
    }
  }
  return values;
}

}  // namespace sfmamba::observability

#endif  // SFMAMBA_TESTS_SERVER_OBSERVABILITY_METRIC_VALUES_H_
