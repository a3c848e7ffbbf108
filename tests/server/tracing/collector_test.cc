#include "server/tracing/collector.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "httplib.h"
#include "nlohmann/json.hpp"
#include "tests/server/tracing/collector_stand_in.h"
#include "tests/testing/patience.h"

namespace sfmamba::tracing {
namespace {

using nlohmann::json;

std::vector<Span> Spans(int count) {
  std::vector<Span> spans(count);
  for (int i = 0; i < count; ++i) {
    spans[i].name = "decode";
    spans[i].context = {{1, 2}, SpanId(i) + 1};
  }
  return spans;
}

class CollectorTest : public testing::Test {
 protected:
  CollectorTest() {
    options_.endpoint = stand_in_->url();
    options_.changed = [this](const absl::Status& status) {
      absl::MutexLock lock(&mu_);
      changes_.push_back(status);
    };
  }

  Collector& Start() {
    collector_ = std::make_unique<Collector>(options_);
    return *collector_;
  }
  // Calls TakeCounts() repeatedly, until at least `spans` spans have been
  // exported or dropped. Returns the sums of the taken counts.
  Collector::Counts AwaitCounts(int64_t spans) {
    Collector::Counts sum;
    WaitUntil(
        [&] {
          const Collector::Counts counts = collector_->TakeCounts();
          sum.exported += counts.exported;
          sum.dropped += counts.dropped;
          return sum.exported + sum.dropped >= spans;
        },
        "spans to be counted");
    return sum;
  }
  std::vector<absl::Status> changes() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return changes_;
  }

  const TimeLimit limit_{"the end of the test", kTestPatience};
  absl::Mutex mu_;
  std::vector<absl::Status> changes_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<CollectorStandIn> stand_in_ =
      std::make_unique<CollectorStandIn>();
  Collector::Options options_;
  std::unique_ptr<Collector> collector_;
};

TEST_F(CollectorTest, SendsAllThatASpanSays) {
  Span span;
  span.name = "rpc";
  span.context = {{0x4bf92f3577b34da6, 0xa3ce929d0e0e4736}, 0x00f067aa0ba902b7};
  span.parent = 5;
  span.is_server = true;
  span.start = absl::FromUnixNanos(1'700'000'000'123'456'789);
  span.end = span.start + absl::Nanoseconds(1001);
  span.attributes = {{"number", int64_t{-3}}, {"text", "a\xff"}};
  span.links = {{{0, 6}, 7}, {{0, 8}, 9}};
  span.tracestate = "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE";
  span.error = "disk \xffull";
  options_.version = "1.2";
  options_.host = "here";
  Start().Add({span});
  ASSERT_TRUE(collector_->Stop(kPatience));
  ASSERT_EQ(stand_in_->requests().size(), 1);
  const json sent = stand_in_->requests()[0]["resourceSpans"][0];
  EXPECT_EQ(AttributeOf(sent["resource"], "service.name"), "sfmamba");
  EXPECT_EQ(AttributeOf(sent["resource"], "service.version"), "1.2");
  EXPECT_EQ(AttributeOf(sent["resource"], "host.name"), "here");
  EXPECT_EQ(sent["scopeSpans"][0]["scope"]["name"], "sfmamba");
  const json expected = {
      {"traceId", "4bf92f3577b34da6a3ce929d0e0e4736"},
      {"spanId", "00f067aa0ba902b7"},
      {"parentSpanId", "0000000000000005"},
      {"traceState", span.tracestate},
      {"flags", 1},
      {"name", "rpc"},
      {"kind", 2},
      {"startTimeUnixNano", "1700000000123456789"},
      {"endTimeUnixNano", "1700000000123457790"},
      {"attributes",
       {{{"key", "number"}, {"value", {{"intValue", "-3"}}}},
        {{"key", "text"}, {"value", {{"stringValue", "a\uFFFD"}}}}}},
      {"links",
       {{{"traceId", "00000000000000000000000000000006"},
         {"spanId", "0000000000000007"}},
        {{"traceId", "00000000000000000000000000000008"},
         {"spanId", "0000000000000009"}}}},
      {"status", {{"code", 2}, {"message", "disk \uFFFDull"}}}};
  EXPECT_EQ(stand_in_->spans()[0], expected);
}

TEST_F(CollectorTest, ASpanWithoutParentOrErrorHasNone) {
  Start().Add(Spans(1));
  ASSERT_TRUE(collector_->Stop(kPatience));
  const json span = stand_in_->spans().at(0);
  EXPECT_EQ(span["kind"], 1);
  for (const char* part : {"parentSpanId", "status", "traceState", "links"}) {
    EXPECT_FALSE(span.contains(part)) << part;
  }
}

TEST_F(CollectorTest, SendsFewSpansWithoutBeingStopped) {
  Start().Add(Spans(3));
  EXPECT_TRUE(stand_in_->AwaitSpans(3, kPatience));
  EXPECT_EQ(AwaitCounts(3).exported, 3);
  EXPECT_TRUE(changes().empty());
}

TEST_F(CollectorTest, TakesNothingOnceItStops) {
  EXPECT_TRUE(Start().Stop(kPatience));
  collector_->Add(Spans(2));
  EXPECT_EQ(AwaitCounts(2).dropped, 2);
  EXPECT_TRUE(stand_in_->spans().empty());
}

TEST_F(CollectorTest, ACollectorThatHangsBlocksNobodyAndTheQueueIsBounded) {
  stand_in_->Hang();
  options_.max_spans = 100;
  options_.timeout = absl::Seconds(2);
  Start().Add(Spans(10));
  ASSERT_TRUE(stand_in_->AwaitSpans(10, kPatience));
  for (int i = 0; i < 1000; ++i) collector_->Add(Spans(10));
  EXPECT_GE(collector_->TakeCounts().dropped, 9900);
  EXPECT_FALSE(collector_->Stop(absl::Milliseconds(10)));
}

TEST_F(CollectorTest, ACollectorThatDoesNotAnswerInTimeLosesTheSpans) {
  stand_in_->Hang();
  options_.timeout = absl::Milliseconds(100);
  Start().Add(Spans(2));
  EXPECT_EQ(AwaitCounts(2).dropped, 2);
}

TEST_F(CollectorTest, ErrorsAreToldOnceUntilTheyEnd) {
  stand_in_->AnswerWith({grpc::StatusCode::RESOURCE_EXHAUSTED, "busy"});
  Start();
  for (int i = 0; i < 2; ++i) {
    collector_->Add(Spans(2));
    EXPECT_EQ(AwaitCounts(2).dropped, 2);
  }
  stand_in_->AnswerWith(grpc::Status::OK);
  collector_->Add(Spans(2));
  EXPECT_EQ(AwaitCounts(2).exported, 2);
  WaitUntil([&] { return changes().size() == 2; }, "both changes");
  EXPECT_TRUE(absl::StrContains(changes()[0].message(), "busy"));
  EXPECT_EQ(changes()[1], absl::OkStatus());
}

TEST_F(CollectorTest, AClosedPortIsAnError) {
  stand_in_ = nullptr;
  Start().Add(Spans(2));
  EXPECT_EQ(AwaitCounts(2).dropped, 2);
  WaitUntil([&] { return changes().size() == 1; }, "the error");
  EXPECT_TRUE(absl::StrContains(changes()[0].message(), "UNAVAILABLE"))
      << changes()[0];
  EXPECT_TRUE(collector_->Stop(kPatience));
}

TEST_F(CollectorTest, AServerOfHttp1IsAnError) {
  httplib::Server other;
  options_.endpoint =
      absl::StrCat("http://127.0.0.1:", other.bind_to_any_port("127.0.0.1"));
  std::thread thread([&other] { other.listen_after_bind(); });
  Start().Add(Spans(2));
  EXPECT_EQ(AwaitCounts(2).dropped, 2);
  EXPECT_TRUE(collector_->Stop(kPatience));
  other.stop();
  thread.join();
}

TEST_F(CollectorTest, EndsWithoutBeingStopped) {
  stand_in_->Hang();
  options_.timeout = absl::Milliseconds(100);
  Start().Add(Spans(1));
  ASSERT_TRUE(stand_in_->AwaitSpans(1, kPatience));
  collector_ = nullptr;
}

}  // namespace
}  // namespace sfmamba::tracing
