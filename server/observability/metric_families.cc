#include "server/observability/metric_families.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"

namespace sfmamba::observability {

Buckets LatencyBuckets() {
  return {.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1,
          .25,   .5,     1,     2.5,  5,     10,   20,  30,   60,  120};
}

Buckets PowersOfTwo(int first, int last) {
  Buckets buckets;
  for (int i = first; i <= last; ++i) buckets.push_back(int64_t{1} << i);
  return buckets;
}

prometheus::Family<prometheus::Counter>& MetricFamilies::counter(
    const char* name, const char* help) {
  return prometheus::BuildCounter()
      .Name(absl::StrCat("sfmamba_", name))
      .Help(help)
      .Register(registry);
}
prometheus::Family<prometheus::Gauge>& MetricFamilies::gauge(const char* name,
                                                             const char* help) {
  return prometheus::BuildGauge()
      .Name(absl::StrCat("sfmamba_", name))
      .Help(help)
      .Register(registry);
}
HistogramFamily& MetricFamilies::histogram(const char* name, const char* help) {
  return histograms.emplace_back(absl::StrCat("sfmamba_", name), help);
}

MetricFamilies::MetricFamilies(const BuildInfo& build) {
  build_info
      .Add({{"version", build.version},
            {"revision", build.revision},
            {"cuda", build.cuda},
            {"torch", build.torch}})
      .Set(1);
  for (int i = 0; i < kMethodCount; ++i) {
    const std::string method(MethodName(static_cast<Method>(i)));
    in_flight_by_method[i] = &in_flight.Add({{"method", method}});
    bytes_by_method[i] =
        &request_bytes.Add({{"method", method}}, PowersOfTwo(8, 26));
  }
}

}  // namespace sfmamba::observability
