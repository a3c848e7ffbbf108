#ifndef SFMAMBA_SERVER_OBSERVABILITY_TRACE_CONTEXT_H_
#define SFMAMBA_SERVER_OBSERVABILITY_TRACE_CONTEXT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

// W3C Trace Context: what a caller says of the trace that its request is part
// of.

namespace sfmamba::observability {

// Which trace; all zeros is none.
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

// Which span of a trace; 0 is none.
using SpanId = uint64_t;

struct TraceContext {
  TraceId trace;
  SpanId parent = 0;     // The caller's span; 0 if the trace begins here.
  bool sampled = false;  // Whether the caller records it.
};

// The context in a `traceparent` value ("00-<trace id>-<parent id>-<flags>").
// None if it is not in form or an id is all zeros. Of later versions than 00
// what they share with it is read.
std::optional<TraceContext> ParseTraceparent(absl::string_view traceparent);

// Returns the parsed context, or a new trace that begins here.
TraceContext TraceContextOf(absl::string_view traceparent);

// Returns the part of a `tracestate` value that is handed on: all of it if it
// is in form and has up to 512 bytes; else without its largest members, those
// of more than 128 bytes, and then without its last ones. Empty if it is not in
// form, or has more than 32 members.
std::string KeptTracestate(absl::string_view tracestate);

// Return ids as headers have them: 32 and 16 lower-case hexadecimal digits.
std::string Hex(const TraceId& id);
std::string Hex(SpanId id);

// New random ids, which are not 0.
TraceId NewTraceId();
SpanId NewSpanId();

}  // namespace sfmamba::observability

#endif  // SFMAMBA_SERVER_OBSERVABILITY_TRACE_CONTEXT_H_
