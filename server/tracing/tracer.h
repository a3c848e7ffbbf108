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

// Returns true if a request is traced. If the caller sent a span, returns the
// sampled flag that the caller sent. Otherwise, the trace begins in this
// server, and the result depends only on the trace id and on `ratio`. Servers
// with the same ratio therefore choose the same traces.
bool IsSampled(const observability::TraceContext& context, double ratio);

// Chooses the requests that are traced and passes their spans to a collector.
// If there is no collector, no request is traced.
//
// Thread-safe.
class Tracer {
 public:
  Tracer(double ratio, std::unique_ptr<Collector> collector);

  // Sets the fraction of traces that are recorded, from 0 to 1. The fraction
  // applies only to traces that begin in this server.
  void set_ratio(double ratio) { ratio_.store(ratio); }
  double ratio() const { return ratio_.load(); }

  // Returns the trace of a new request, or null if the request is not traced.
  // `tracestate` is the W3C header of this name, or "".
  std::shared_ptr<const RequestTrace> Begin(
      const observability::TraceContext& context, absl::string_view tracestate);

  // Stop() calls Collector::Stop(), and TakeCounts() calls
  // Collector::TakeCounts(). If there is no collector, Stop() returns true and
  // TakeCounts() returns zeros.
  bool Stop(absl::Duration limit);
  Collector::Counts TakeCounts();

 private:
  std::atomic<double> ratio_;
  const std::unique_ptr<Collector> collector_;
};

}  // namespace sfmamba::tracing

#endif  // SFMAMBA_SERVER_TRACING_TRACER_H_
