#ifndef SFMAMBA_SERVER_TRACING_TRACER_H_
#define SFMAMBA_SERVER_TRACING_TRACER_H_

#include <atomic>
#include <memory>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/observability/trace_context.h"
#include "server/tracing/collector.h"
#include "server/tracing/request_trace.h"

namespace sfmamba::tracing {

// Returns whether a request is traced. The sampled flag of its caller's span
// decides. If the trace begins here, the trace id decides, so that servers with
// equal ratios choose the same traces.
bool IsSampled(const observability::TraceContext& context, double ratio);

// Chooses the requests that are traced and hands their spans to a collector.
// Without a collector no request is traced.
//
// Thread-safe.
class Tracer {
 public:
  Tracer(double ratio, std::unique_ptr<Collector> collector);

  // Sets the share of the traces beginning here that are recorded: 0 to 1.
  void set_ratio(double ratio) { ratio_.store(ratio); }
  double ratio() const { return ratio_.load(); }

  // Returns the trace of a request that has arrived. Returns null, at no cost,
  // if the request is not traced. `tracestate` is the W3C header or empty.
  std::shared_ptr<const RequestTrace> Begin(
      const observability::TraceContext& context, absl::string_view tracestate);

  // See Collector. Without one nothing is sent or counted.
  bool Stop(absl::Duration limit);
  Collector::Counts TakeCounts();

 private:
  std::atomic<double> ratio_;
  const std::unique_ptr<Collector> collector_;
};

}  // namespace sfmamba::tracing

#endif  // SFMAMBA_SERVER_TRACING_TRACER_H_
