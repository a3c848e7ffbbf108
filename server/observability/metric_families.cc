#include "server/observability/metric_families.h"

#include <cstdint>
#include <utility>

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

Family<Counter> MetricFamilies::counter(const char* name, const char* help,
                                        Names labels) {
  return {prometheus::BuildCounter()
              .Name(absl::StrCat("sfmamba_", name))
              .Help(help)
              .Register(registry),
          std::move(labels),
          {}};
}

Family<Gauge> MetricFamilies::gauge(const char* name, const char* help,
                                    Names labels) {
  return {prometheus::BuildGauge()
              .Name(absl::StrCat("sfmamba_", name))
              .Help(help)
              .Register(registry),
          std::move(labels),
          {}};
}

Family<Histogram> MetricFamilies::histogram(const char* name, const char* help,
                                            Names labels, Buckets bounds) {
  return {prometheus::BuildHistogram()
              .Name(absl::StrCat("sfmamba_", name))
              .Help(help)
              .Register(registry),
          std::move(labels), std::move(bounds)};
}

MetricFamilies::MetricFamilies(const BuildInfo& build) {
  build_info.Of({build.version, build.revision, build.cuda, build.torch})
      .Set(1);
  for (int i = 0; i < kMethodCount; ++i) {
    in_flight.Of({MethodName(static_cast<Method>(i))});
    request_bytes.Of({MethodName(static_cast<Method>(i))});
  }
  decode_busy.Of();
  decode_queue.Of();
  for (Series<Counter>* series :
       {&log_lines_dropped, &spans_exported, &spans_dropped,
        &handshake_failures, &malformed_forwards}) {
    series->Of();
  }
  for (const char* port : {"grpc", "http"}) connections_refused.Of({port});
}

}  // namespace sfmamba::observability
