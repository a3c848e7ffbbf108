#ifndef SFMAMBA_SERVER_OBSERVABILITY_TRACE_CONTEXT_H_
#define SFMAMBA_SERVER_OBSERVABILITY_TRACE_CONTEXT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

// This file implements W3C Trace Context. The headers `traceparent` and
// `tracestate` describe the trace of a caller.

namespace sfmamba::observability {

// The id of a trace. If all bits are zero, there is no trace.
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

// The id of a span within a trace. If the id is 0, there is no span.
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

// Returns the result of ParseTraceparent(). If parsing fails, returns a new
// trace without a parent.
TraceContext TraceContextOf(absl::string_view traceparent);

// Returns the part of a `tracestate` header that is propagated. The header is a
// list of members, separated by commas. If the header has more than 512 bytes,
// members of more than 128 bytes are removed first, and then the last members.
// If the header is malformed or has more than 32 members, returns "".
std::string KeptTracestate(absl::string_view tracestate);

// These functions return the id in lower-case hexadecimal digits, as in the
// headers. A trace id has 32 digits, and a span id has 16.
std::string Hex(const TraceId& id);
std::string Hex(SpanId id);

// These functions return new random ids, which are never 0.
TraceId NewTraceId();
SpanId NewSpanId();

}  // namespace sfmamba::observability

#endif  // SFMAMBA_SERVER_OBSERVABILITY_TRACE_CONTEXT_H_
