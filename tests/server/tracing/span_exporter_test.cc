#include "server/tracing/span_exporter.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/steady_clock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/server/tracing/fake_sink.h"
#include "tests/testing/patience.h"

namespace sfmamba::tracing {
namespace {

std::vector<Span> Spans(int count, int links = 0) {
  std::vector<Span> spans(count);
  for (Span& span : spans) {
    span.name = "rpc";
    span.links.resize(links);
  }
  return spans;
}

size_t SpansOf(const std::string& request) {
  return nlohmann::json::parse(
             request)["resourceSpans"][0]["scopeSpans"][0]["spans"]
      .size();
}

class SpanExporterTest : public testing::Test {
 protected:
  SpanExporterTest() {
    options_.delay = absl::ZeroDuration();
    options_.changed = [this](const absl::Status& status) {
      absl::MutexLock lock(&mu_);
      changes_.push_back(status);
    };
  }
  SpanExporter& Start() {
    exporter_ = std::make_unique<SpanExporter>(
        options_, std::make_unique<FakeSink>(sink_));
    return *exporter_;
  }
  // Stops, and returns what became of all spans.
  SpanExporter::Counts Stop(absl::Duration limit = kPatience) {
    exporter_->StartStopping(limit);
    exporter_->AwaitStopped();
    return exporter_->TakeCounts();
  }
  std::vector<absl::Status> changes() {
    absl::MutexLock lock(&mu_);
    return changes_;
  }

  SpanExporter::Options options_;
  const std::shared_ptr<SinkState> sink_ = std::make_shared<SinkState>();
  absl::Mutex mu_;
  std::vector<absl::Status> changes_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<SpanExporter> exporter_;  // Last: its thread uses the rest.
};

TEST_F(SpanExporterTest, WritesWhatItWasGivenInBatches) {
  options_.delay = absl::Hours(1);
  options_.batch = 10;
  SpanExporter& exporter = Start();
  exporter.Add(Spans(9));
  exporter.Add(Spans(12));
  ASSERT_TRUE(sink_->AwaitAttempts(2, kPatience));
  EXPECT_EQ(SpansOf(sink_->requests[0]), 10);
  EXPECT_EQ(SpansOf(sink_->requests[1]), 10);
  // The last one is not alone worth a request yet.
  const SpanExporter::Counts counts = Stop();
  EXPECT_EQ(sink_->attempts(), 3);
  EXPECT_EQ(counts.exported, 21);
  EXPECT_EQ(counts.dropped, 0);
  EXPECT_EQ(exporter.TakeCounts().exported, 0);
  EXPECT_TRUE(changes().empty());
}

TEST_F(SpanExporterTest, WritesFewOnceTheyHaveWaited) {
  options_.delay = absl::Milliseconds(1);
  Start().Add(Spans(1));
  EXPECT_TRUE(sink_->AwaitAttempts(1, kPatience));
}

TEST_F(SpanExporterTest, ASinkThatHangsBlocksNobodyAndTheQueueIsBounded) {
  sink_->hangs = true;
  options_.max_spans = 100;
  options_.batch = 10;
  SpanExporter& exporter = Start();
  exporter.Add(Spans(10));
  ASSERT_TRUE(sink_->AwaitAttempts(1, kPatience));
  const absl::Time start = base::SteadyNow();
  for (int i = 0; i < 1000; ++i) exporter.Add(Spans(10));
  EXPECT_LT(base::SteadyNow() - start, absl::Seconds(5));
  EXPECT_EQ(exporter.TakeCounts().dropped, 9900);
  const absl::Time stop = base::SteadyNow();
  EXPECT_EQ(Stop(absl::Milliseconds(100)).exported, 0);
  EXPECT_LT(base::SteadyNow() - stop, absl::Seconds(5));
}

TEST_F(SpanExporterTest, ALinkTakesTheRoomOfASpan) {
  sink_->hangs = true;
  options_.max_spans = 100;
  options_.batch = 1;
  SpanExporter& exporter = Start();
  exporter.Add(Spans(1));
  ASSERT_TRUE(sink_->AwaitAttempts(1, kPatience));
  exporter.Add(Spans(4, 24));
  EXPECT_EQ(exporter.TakeCounts().dropped, 0);
  exporter.Add(Spans(1));
  EXPECT_EQ(exporter.TakeCounts().dropped, 1);
  Stop(absl::ZeroDuration());
}

TEST_F(SpanExporterTest, WhatIsRefusedForNowIsTriedAgain) {
  sink_->answers = {absl::UnavailableError("busy"), absl::OkStatus()};
  Start().Add(Spans(3));
  ASSERT_TRUE(sink_->AwaitAttempts(2, kPatience));
  EXPECT_EQ(Stop().exported, 3);
  EXPECT_EQ(sink_->requests[0], sink_->requests[1]);
  EXPECT_TRUE(changes().empty());
}

TEST_F(SpanExporterTest, WhatIsRefusedForNowAgainAndAgainIsDropped) {
  const absl::Status busy = absl::UnavailableError("busy");
  sink_->answers = {busy, busy, busy, busy, absl::OkStatus()};
  options_.batch = 1;
  Start().Add(Spans(2));
  ASSERT_TRUE(sink_->AwaitAttempts(5, kPatience));
  const SpanExporter::Counts counts = Stop();
  EXPECT_EQ(counts.dropped, 1) << "after four attempts";
  EXPECT_EQ(counts.exported, 1);
}

TEST_F(SpanExporterTest, WhatIsRefusedForGoodIsDroppedAndToldOnce) {
  const absl::Status refused = absl::FailedPreconditionError("not found");
  sink_->answers = {refused, refused, absl::OkStatus()};
  options_.batch = 1;
  SpanExporter& exporter = Start();
  exporter.Add(Spans(4));
  ASSERT_TRUE(sink_->AwaitAttempts(4, kPatience));
  const SpanExporter::Counts counts = Stop();
  EXPECT_EQ(counts.dropped, 2);
  EXPECT_EQ(counts.exported, 2);
  EXPECT_EQ(changes(), (std::vector<absl::Status>{refused, absl::OkStatus()}));
}

TEST_F(SpanExporterTest, AtTheEndNothingIsTriedTwice) {
  sink_->answers = {absl::UnavailableError("gone")};
  options_.batch = 1;
  SpanExporter& exporter = Start();
  exporter.Add(Spans(1));
  ASSERT_TRUE(sink_->AwaitAttempts(1, kPatience));
  exporter.Add(Spans(2));
  TimeLimit limit("the end");
  const SpanExporter::Counts counts = Stop();
  EXPECT_EQ(counts.dropped, 3);
  EXPECT_LE(sink_->attempts(), 4);
}

TEST_F(SpanExporterTest, TakesNothingOnceItStops) {
  SpanExporter& exporter = Start();
  Stop();
  exporter.Add(Spans(2));
  EXPECT_EQ(exporter.TakeCounts().dropped, 2);
  EXPECT_EQ(sink_->attempts(), 0);
}

TEST_F(SpanExporterTest, EndsWithoutBeingStopped) {
  sink_->hangs = true;
  Start().Add(Spans(1));
  ASSERT_TRUE(sink_->AwaitAttempts(1, kPatience));
  TimeLimit limit("the exporter's end");
  exporter_ = nullptr;
}

TEST(RetryDelayTest, DoublesAndEnds) {
  EXPECT_EQ(RetryDelay(1), absl::Milliseconds(500));
  EXPECT_EQ(RetryDelay(2), absl::Seconds(1));
  EXPECT_EQ(RetryDelay(3), absl::Seconds(2));
  EXPECT_EQ(RetryDelay(4), absl::ZeroDuration());
}

}  // namespace
}  // namespace sfmamba::tracing
