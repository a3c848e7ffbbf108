#include "server/tracing/batch_trace.h"

#include <utility>

namespace sfmamba::tracing {

void BatchTrace::AddImage(const ImageTrace& image) {
  if (image.request == nullptr) return;
  if (id_ == 0) id_ = observability::NewSpanId();
  last_ = image.request;
  images_.push_back({image.request->rpc().trace, image.inference});
}

SpanContext BatchTrace::context() const {
  if (last_ == nullptr) return {};
  return {last_->rpc().trace, id_};
}

void BatchTrace::End(absl::Time start, absl::Time end,
                     std::vector<Attribute> attributes) {
  if (last_ == nullptr) return;
  Span span = last_->MakeSpan("batch", start, end, id_);
  span.attributes = std::move(attributes);
  span.links = std::move(images_);
  std::vector<Span> spans;
  spans.push_back(std::move(span));
  std::exchange(last_, nullptr)->Add(std::move(spans));
}

}  // namespace sfmamba::tracing
