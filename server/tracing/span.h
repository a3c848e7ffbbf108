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

// Names a span in all the world; `span` is 0 if it names none.
struct SpanContext {
  TraceId trace;
  SpanId span = 0;

  bool empty() const { return span == 0; }
};

// What a span says of its work. The key is a literal.
struct Attribute {
  Attribute(const char* key, int64_t number) : key(key), value(number) {}
  Attribute(const char* key, int number) : key(key), value(int64_t{number}) {}
  Attribute(const char* key, absl::string_view text)
      : key(key), value(std::string(text)) {}

  const char* key;
  std::variant<int64_t, std::string> value;
};

// A piece of work that has ended. Its times are of the wall clock.
struct Span {
  const char* name = "";  // A literal.
  SpanContext context;
  SpanId parent = 0;  // A span of the same trace; 0: none.
  // Whether it answers a caller elsewhere; other spans are of the inside.
  bool is_server = false;
  absl::Time start;
  absl::Time end;
  std::vector<Attribute> attributes;
  std::vector<SpanContext> links;
  std::string tracestate;
  // Why the work failed by the server's fault; empty: it did not.
  std::string error;
};

}  // namespace sfmamba::tracing

#endif  // SFMAMBA_SERVER_TRACING_SPAN_H_
