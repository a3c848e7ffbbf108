#ifndef SFMAMBA_SERVER_TRACING_REQUEST_TRACE_H_
#define SFMAMBA_SERVER_TRACING_REQUEST_TRACE_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "server/observability/trace_context.h"
#include "server/tracing/span.h"

namespace sfmamba::tracing {

// A function that receives finished spans. Must be thread-safe and must never
// block.
using SpanReceiver = std::function<void(std::vector<Span>)>;

// Creates the spans (timed steps) of one traced request. They are children of
// the request's span "rpc". A request that is not traced has no RequestTrace.
//
// Thread-safe.
class RequestTrace {
 public:
  // `steady_now` is the current time by base::SteadyNow(), and `wall_now` is
  // the current time by the wall clock. The difference between these two times
  // converts the times of all spans to times by the wall clock. Later changes
  // of the wall clock therefore do not move the spans. All objects that
  // `receiver` uses must outlive this object.
  RequestTrace(const observability::TraceContext& context,
               std::string tracestate, absl::Time steady_now,
               absl::Time wall_now, SpanReceiver receiver)
      : rpc_{context.trace, observability::NewSpanId()},
        parent_(context.parent),
        tracestate_(std::move(tracestate)),
        wall_minus_steady_(wall_now - steady_now),
        receiver_(std::move(receiver)) {}

  // rpc() returns the span "rpc", and parent() returns the parent of this span.
  // The parent is the caller's span, or 0 if the caller sent no span.
  const SpanContext& rpc() const { return rpc_; }
  SpanId parent() const { return parent_; }
  const std::string& tracestate() const { return tracestate_; }

  // Returns a new span whose parent is the span "rpc". `start` and `end` are
  // times of base::SteadyNow().
  Span MakeSpan(const char* name, absl::Time start, absl::Time end,
                SpanId id = observability::NewSpanId()) const {
    Span span;
    span.name = name;
    span.context = {rpc_.trace, id};
    span.parent = rpc_.span;
    span.start = start + wall_minus_steady_;
    span.end = end + wall_minus_steady_;
    return span;
  }

  void Add(std::vector<Span> spans) const { receiver_(std::move(spans)); }

 private:
  const SpanContext rpc_;
  const SpanId parent_;
  const std::string tracestate_;
  const absl::Duration wall_minus_steady_;
  const SpanReceiver receiver_;
};

}  // namespace sfmamba::tracing

#endif  // SFMAMBA_SERVER_TRACING_REQUEST_TRACE_H_
