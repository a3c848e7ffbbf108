#ifndef SFMAMBA_SERVER_TRACING_SPAN_H_
#define SFMAMBA_SERVER_TRACING_SPAN_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/observability/trace_context.h"

namespace sfmamba::tracing {

using observability::SpanId;
using observability::TraceId;

// The globally unique identity of a span. If `span` is 0, there is no span.
struct SpanContext {
  TraceId trace;
  SpanId span = 0;

  bool empty() const { return span == 0; }
};

// An attribute of a span. `key` must be a string literal.
struct Attribute {
  Attribute(const char* key, int64_t number) : key(key), value(number) {}
  Attribute(const char* key, int number) : key(key), value(int64_t{number}) {}
  Attribute(const char* key, absl::string_view text)
      : key(key), value(std::string(text)) {}

  const char* key;
  std::variant<int64_t, std::string> value;
};

// Describes a finished piece of work. The times are by the wall clock.
struct Span {
  const char* name = "";  // Must be a string literal.
  SpanContext context;
  // The id of the parent span, which belongs to the same trace. If the span has
  // no parent, this id is 0.
  SpanId parent = 0;
  // The span kind of OpenTelemetry. True means SERVER, that is, work for a
  // remote caller. False means INTERNAL.
  bool is_server = false;
  absl::Time start;
  absl::Time end;
  std::vector<Attribute> attributes;
  std::vector<SpanContext> links;
  std::string tracestate;
  // The reason why the work failed. Empty if the work succeeded, or if the
  // server is not at fault.
  std::string error;
};

}  // namespace sfmamba::tracing

#endif  // SFMAMBA_SERVER_TRACING_SPAN_H_
