#ifndef SFMAMBA_SERVER_TRACING_TRACER_H_
#define SFMAMBA_SERVER_TRACING_TRACER_H_

#include <atomic>
#include <memory>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/observability/trace_context.h"
#include "server/tracing/request_trace.h"
#include "server/tracing/span_exporter.h"

namespace sfmamba::tracing {

// Whether a request is traced: as its caller's span is, or, if the trace begins
// here, in `ratio` of all traces, which the trace id decides. So servers with
// equal ratios choose the same ones.
bool IsSampled(const observability::TraceContext& context, double ratio);

// Chooses the requests that are traced and hands their spans to exporters.
// Without exporters none is.
//
// Thread-safe.
class Tracer {
 public:
  Tracer(double ratio, std::vector<std::unique_ptr<SpanExporter>> exporters);

  // From now on: of the traces that begin here, 0 to 1.
  void set_ratio(double ratio) { ratio_.store(ratio); }
  double ratio() const { return ratio_.load(); }

  // The trace of a request that has come; null if it is not traced, which costs
  // nothing. `tracestate` is the W3C header or empty.
  std::shared_ptr<const RequestTrace> Begin(
      const observability::TraceContext& context, absl::string_view tracestate);

  // Takes no more spans, and waits up to `limit` until those it has are
  // written.
  void Stop(absl::Duration limit);

  // Returns what happened to spans since the last call.
  SpanExporter::Counts TakeCounts();

 private:
  void Add(std::vector<Span> spans);

  std::atomic<double> ratio_;
  const std::vector<std::unique_ptr<SpanExporter>> exporters_;
};

}  // namespace sfmamba::tracing

#endif  // SFMAMBA_SERVER_TRACING_TRACER_H_
