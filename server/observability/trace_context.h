#ifndef SFMAMBA_SERVER_OBSERVABILITY_TRACE_CONTEXT_H_
#define SFMAMBA_SERVER_OBSERVABILITY_TRACE_CONTEXT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

// W3C Trace Context. With these headers a caller describes its trace.

namespace sfmamba::observability {

// The id of a trace. All zeros means that there is none.
struct TraceId {
  uint64_t high = 0;
  uint64_t low = 0;

  friend bool operator==(const TraceId& a, const TraceId& b) {
    return a.high == b.high && a.low == b.low;
  }
  friend bool operator!=(const TraceId& a, const TraceId& b) {
    return !(a == b);
  }
};

// The id of a span within a trace. 0 means that there is none.
using SpanId = uint64_t;

struct TraceContext {
  TraceId trace;
  SpanId parent = 0;     // The caller's span, or 0 if the trace starts here.
  bool sampled = false;  // True if the caller records the trace.
};

// Parses a `traceparent` header ("00-<trace id>-<parent id>-<flags>"). Returns
// nullopt if the header is malformed or an id is all zeros. In a header of a
// later version, only the fields of version 00 are read.
std::optional<TraceContext> ParseTraceparent(absl::string_view traceparent);

// Returns the parsed context, or a new trace if parsing fails.
TraceContext TraceContextOf(absl::string_view traceparent);

// Returns the part of a `tracestate` header that is propagated. If the header
// has more than 512 bytes, members of more than 128 bytes are removed first,
// and then the last members. Returns "" if the header is malformed or has more
// than 32 members.
std::string KeptTracestate(absl::string_view tracestate);

// Return the id as lower-case hexadecimal digits, which is the form that the
// headers use. A trace id has 32 digits, and a span id has 16.
std::string Hex(const TraceId& id);
std::string Hex(SpanId id);

// Return new random ids, which are never 0.
TraceId NewTraceId();
SpanId NewSpanId();

}  // namespace sfmamba::observability

#endif  // SFMAMBA_SERVER_OBSERVABILITY_TRACE_CONTEXT_H_
