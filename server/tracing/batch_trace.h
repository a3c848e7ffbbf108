#ifndef SFMAMBA_SERVER_TRACING_BATCH_TRACE_H_
#define SFMAMBA_SERVER_TRACING_BATCH_TRACE_H_

#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "server/tracing/request_trace.h"
#include "server/tracing/span.h"

namespace sfmamba::tracing {

// The trace of one image of a batch. `request` is null if the image's request
// is not traced.
struct ImageTrace {
  std::shared_ptr<const RequestTrace> request;
  SpanId inference = 0;  // The id of the image's span "inference".
};

// Records the span "batch" if the batch has an image of a traced request. The
// span "batch" links to the span "inference" of each traced image. The parent
// of the span "batch" is the span "rpc" of one request. This is the request of
// the last traced image. If no request of the batch is traced, there is no
// span, and this object allocates nothing.
//
// Thread-compatible.
class BatchTrace {
 public:
  // Adds the next image of the batch.
  void AddImage(const ImageTrace& image);

  // Returns the identity of the span "batch". The identity is empty if there is
  // no span.
  SpanContext context() const;
  // Records the span "batch". `start` and `end` are the times of the batch by
  // base::SteadyNow().
  void End(absl::Time start, absl::Time end, std::vector<Attribute> attributes);

 private:
  SpanId id_ = 0;
  std::shared_ptr<const RequestTrace> last_;
  std::vector<SpanContext> images_;
};

}  // namespace sfmamba::tracing

#endif  // SFMAMBA_SERVER_TRACING_BATCH_TRACE_H_
