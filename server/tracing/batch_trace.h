#ifndef SFMAMBA_SERVER_TRACING_BATCH_TRACE_H_
#define SFMAMBA_SERVER_TRACING_BATCH_TRACE_H_

#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "server/tracing/request_trace.h"
#include "server/tracing/span.h"

namespace sfmamba::tracing {

// An image's part in the trace of its request; `request` is null if that is
// not traced.
struct ImageTrace {
  std::shared_ptr<const RequestTrace> request;
  SpanId inference = 0;  // The image's span of that name.
};

// The span "batch": one for each batch that has an image of a traced request.
// It links to the span "inference" of all such images. It is below the request
// of the last of them, which lasts longest. Costs nothing in a batch without.
//
// Thread-compatible.
class BatchTrace {
 public:
  // The next image of the batch.
  void AddImage(const ImageTrace& image);

  // The span; empty if there is none.
  SpanContext context() const;
  // Ends the span. The times are SteadyNow()'s.
  void End(absl::Time start, absl::Time end, std::vector<Attribute> attributes);

 private:
  SpanId id_ = 0;
  std::shared_ptr<const RequestTrace> last_;
  std::vector<SpanContext> images_;
};

}  // namespace sfmamba::tracing

#endif  // SFMAMBA_SERVER_TRACING_BATCH_TRACE_H_
