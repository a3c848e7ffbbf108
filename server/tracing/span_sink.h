#ifndef SFMAMBA_SERVER_TRACING_SPAN_SINK_H_
#define SFMAMBA_SERVER_TRACING_SPAN_SINK_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace sfmamba::tracing {

// Writes spans to their destination. Used by one thread, which may wait in it.
class SpanSink {
 public:
  virtual ~SpanSink() = default;

  // Writes the JSON of an OTLP ExportTraceServiceRequest. UNAVAILABLE if it may
  // succeed later. While it waits it asks `stop`, at least every 50 ms, whether
  // to give up.
  virtual absl::Status Write(const std::string& request,
                             absl::FunctionRef<bool()> stop) = 0;
};

}  // namespace sfmamba::tracing

#endif  // SFMAMBA_SERVER_TRACING_SPAN_SINK_H_
