// Measures the time that tracing takes on the threads that handle a request.
// One benchmark measures a request that is not traced, which is the most
// frequent case. The other one measures a traced request with five spans.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/steady_clock.h"
#include "benchmark/benchmark.h"
#include "server/tracing/collector.h"
#include "server/tracing/tracer.h"

namespace sfmamba::tracing {
namespace {

// No process listens here, so spans are dropped after they leave the queue.
constexpr char kNobody[] = "http://127.0.0.1:1";

std::unique_ptr<Tracer> MakeTracer() {
  Collector::Options options;
  options.endpoint = kNobody;
  return std::make_unique<Tracer>(
      0, std::make_unique<Collector>(std::move(options)));
}

observability::TraceContext Context(bool sampled) {
  observability::TraceContext context;
  context.trace = {1, 2};
  context.parent = 3;
  context.sampled = sampled;
  return context;
}

void BM_NotTraced(benchmark::State& state) {
  const auto tracer = MakeTracer();
  const observability::TraceContext context = Context(false);
  for (auto _ : state) {
    benchmark::DoNotOptimize(tracer->Begin(context, "rojo=1"));
  }
}
BENCHMARK(BM_NotTraced);

void BM_FiveSpans(benchmark::State& state) {
  const auto tracer = MakeTracer();
  const observability::TraceContext context = Context(true);
  for (auto _ : state) {
    const auto trace = tracer->Begin(context, "rojo=1");
    const absl::Time now = base::SteadyNow();
    std::vector<Span> spans;
    for (int i = 0; i < 5; ++i) {
      spans.push_back(trace->MakeSpan("decode", now, now));
      spans.back().attributes = {{"sfmamba.image", i}};
    }
    trace->Add(std::move(spans));
  }
}
// With this number of iterations, the queue has room for all spans.
BENCHMARK(BM_FiveSpans)->Iterations(1600)->Repetitions(20);

}  // namespace
}  // namespace sfmamba::tracing

BENCHMARK_MAIN();
