#include "server/tracing/tracer.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "base/steady_clock.h"
#include "gtest/gtest.h"
#include "tests/server/tracing/collector_stand_in.h"
#include "tests/testing/allocations.h"
#include "tests/testing/patience.h"

namespace sfmamba::tracing {
namespace {

using observability::TraceContext;

TraceContext Context(bool has_parent, bool sampled) {
  TraceContext context;
  // Without a parent, the lower half of the ID decides about sampling. Its
  // value here is the middle of its range, so a ratio above 0.5 samples it.
  context.trace = {1, uint64_t{1} << 63};
  context.parent = has_parent ? 7 : 0;
  context.sampled = sampled;
  return context;
}

TEST(IsSampledTest, FollowsTheCaller) {
  for (const double ratio : {0.0, 1.0}) {
    EXPECT_TRUE(IsSampled(Context(true, true), ratio));
    EXPECT_FALSE(IsSampled(Context(true, false), ratio));
  }
}

TEST(IsSampledTest, WithoutACallersSpanTheRatioDecides) {
  EXPECT_FALSE(IsSampled(Context(false, false), 0));
  EXPECT_FALSE(IsSampled(Context(false, false), 0.5));
  EXPECT_TRUE(IsSampled(Context(false, false), 0.51));
  EXPECT_TRUE(IsSampled(Context(false, false), 1));
  TraceContext last = Context(false, false);
  last.trace.low = ~uint64_t{0};
  EXPECT_TRUE(IsSampled(last, 1));
  int sampled = 0;
  for (int i = 0; i < 10'000; ++i) {
    sampled += IsSampled(observability::TraceContextOf(""), 0.25);
  }
  EXPECT_NEAR(sampled, 2500, 250);
}

class TracerTest : public testing::Test {
 protected:
  std::unique_ptr<Tracer> MakeTracer(double ratio) {
    Collector::Options options;
    options.endpoint = stand_in_.url();
    return std::make_unique<Tracer>(
        ratio, std::make_unique<Collector>(std::move(options)));
  }

  CollectorStandIn stand_in_;
};

TEST_F(TracerTest, ARequestsSpansAreBelowItsCallers) {
  const auto tracer = MakeTracer(0);
  const auto trace = tracer->Begin(Context(true, true), "rojo=1");
  ASSERT_NE(trace, nullptr);
  EXPECT_EQ(trace->rpc().trace, Context(true, true).trace);
  EXPECT_NE(trace->rpc().span, 0);
  EXPECT_EQ(trace->parent(), 7);
  EXPECT_EQ(trace->tracestate(), "rojo=1");
  const Span span =
      trace->MakeSpan("decode", absl::UnixEpoch(), absl::UnixEpoch());
  EXPECT_EQ(span.context.trace, trace->rpc().trace);
  EXPECT_EQ(span.parent, trace->rpc().span);
  EXPECT_NE(span.context.span, trace->rpc().span);
}

TEST_F(TracerTest, ATracestateAloneIsNothing) {
  const auto tracer = MakeTracer(1);
  EXPECT_EQ(tracer->Begin(Context(false, false), "rojo=1")->tracestate(), "");
  EXPECT_EQ(tracer->Begin(Context(true, true), "ROJO")->tracestate(), "");
}

TEST_F(TracerTest, TimesAreOfTheWallClockWhenTheRequestCame) {
  const auto tracer = MakeTracer(1);
  const absl::Time before = absl::Now();
  const auto trace = tracer->Begin(Context(true, true), "");
  const absl::Time now = base::SteadyNow();
  const Span span = trace->MakeSpan("decode", now, now + absl::Hours(1));
  EXPECT_GE(span.start, before);
  EXPECT_LE(span.start, absl::Now() + absl::Milliseconds(1));
  EXPECT_EQ(span.end - span.start, absl::Hours(1));
}

TEST_F(TracerTest, TheRatioCanBeChanged) {
  const auto tracer = MakeTracer(0);
  EXPECT_EQ(tracer->Begin(Context(false, false), ""), nullptr);
  tracer->set_ratio(1);
  EXPECT_NE(tracer->Begin(Context(false, false), ""), nullptr);
}

TEST_F(TracerTest, WithoutACollectorNothingIsTraced) {
  Tracer tracer(1, nullptr);
  EXPECT_EQ(tracer.Begin(Context(true, true), "rojo=1"), nullptr);
  EXPECT_TRUE(tracer.Stop(absl::ZeroDuration()));
  EXPECT_EQ(tracer.TakeCounts().dropped, 0);
}

TEST_F(TracerTest, WhatIsNotTracedAllocatesNothing) {
  const auto tracer = MakeTracer(0);
  const TraceContext contexts[] = {Context(true, false), Context(false, false)};
  const int64_t peak = PeakOfHeap([&] {
    for (const TraceContext& context : contexts) {
      EXPECT_EQ(tracer->Begin(context, "rojo=1"), nullptr);
    }
  });
  EXPECT_EQ(peak, 0);
}

TEST_F(TracerTest, TheCollectorGetsAllSpans) {
  const auto tracer = MakeTracer(0);
  const auto trace = tracer->Begin(Context(true, true), "");
  trace->Add({trace->MakeSpan("decode", base::SteadyNow(), base::SteadyNow()),
              trace->MakeSpan("queue", base::SteadyNow(), base::SteadyNow())});
  ASSERT_TRUE(tracer->Stop(kPatience));
  EXPECT_EQ(stand_in_.spans().size(), 2);
  EXPECT_EQ(tracer->TakeCounts().exported, 2);
}

}  // namespace
}  // namespace sfmamba::tracing
