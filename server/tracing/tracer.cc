#include "server/tracing/tracer.h"

#include <cmath>
#include <utility>

#include "absl/time/clock.h"
#include "base/steady_clock.h"

namespace sfmamba::tracing {

bool IsSampled(const observability::TraceContext& context, double ratio) {
  if (context.parent != 0) return context.sampled;
  constexpr int kUsed = 53;  // A double holds 53 bits exactly.
  return std::ldexp(context.trace.low >> (64 - kUsed), -kUsed) < ratio;
}

Tracer::Tracer(double ratio, std::unique_ptr<Collector> collector)
    : ratio_(ratio), collector_(std::move(collector)) {}

std::shared_ptr<const RequestTrace> Tracer::Begin(
    const observability::TraceContext& context, absl::string_view tracestate) {
  if (collector_ == nullptr || !IsSampled(context, ratio())) return nullptr;
  // A tracestate is meaningless without a valid traceparent.
  return std::make_shared<const RequestTrace>(
      context,
      context.parent == 0 ? "" : observability::KeptTracestate(tracestate),
      base::SteadyNow(), absl::Now(),
      [this](const std::vector<Span>& spans) { collector_->Add(spans); });
}

bool Tracer::Stop(absl::Duration limit) {
  return collector_ == nullptr || collector_->Stop(limit);
}

Collector::Counts Tracer::TakeCounts() {
  return collector_ == nullptr ? Collector::Counts() : collector_->TakeCounts();
}

}  // namespace sfmamba::tracing
