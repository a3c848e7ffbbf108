#include "server/tracing/tracer.h"

#include <cmath>
#include <utility>

#include "absl/time/clock.h"
#include "base/steady_clock.h"

namespace sfmamba::tracing {

bool IsSampled(const observability::TraceContext& context, double ratio) {
  if (context.parent != 0) return context.sampled;
  // The id decides, not chance, so that servers with one ratio record the same
  // traces.
  constexpr int kUsed = 53;  // Bits of the id, as many as a double holds.
  return std::ldexp(context.trace.low >> (64 - kUsed), -kUsed) < ratio;
}

Tracer::Tracer(double ratio,
               std::vector<std::unique_ptr<SpanExporter>> exporters)
    : ratio_(ratio), exporters_(std::move(exporters)) {}

std::shared_ptr<const RequestTrace> Tracer::Begin(
    const observability::TraceContext& context, absl::string_view tracestate) {
  if (exporters_.empty() || !IsSampled(context, ratio())) return nullptr;
  // A tracestate without a valid traceparent has no meaning.
  return std::make_shared<const RequestTrace>(
      context,
      context.parent == 0 ? "" : observability::KeptTracestate(tracestate),
      base::SteadyNow(), absl::Now(),
      [this](std::vector<Span> spans) { Add(std::move(spans)); });
}

void Tracer::Stop(absl::Duration limit) {
  // All begin to end before one is waited for: they share the limit.
  for (const auto& exporter : exporters_) exporter->StartStopping(limit);
  for (const auto& exporter : exporters_) exporter->AwaitStopped();
}

SpanExporter::Counts Tracer::TakeCounts() {
  SpanExporter::Counts sum;
  for (const auto& exporter : exporters_) {
    const SpanExporter::Counts counts = exporter->TakeCounts();
    sum.exported += counts.exported;
    sum.dropped += counts.dropped;
  }
  return sum;
}

void Tracer::Add(std::vector<Span> spans) {
  // The others get copies; the first, often the only one, gets the spans.
  for (size_t i = 1; i < exporters_.size(); ++i) exporters_[i]->Add(spans);
  exporters_[0]->Add(std::move(spans));
}

}  // namespace sfmamba::tracing
