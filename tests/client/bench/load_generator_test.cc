#include "client/bench/load_generator.h"

#include <cmath>

#include "client/bench/poisson_arrivals.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/fake_vision_server.h"

namespace sfmamba::client {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

std::vector<v1::ClassifyRequest> OneRequest(int images) {
  std::vector<v1::ClassifyRequest> requests(1);
  for (int i = 0; i < images; ++i) requests[0].add_images()->set_encoded("x");
  return requests;
}

LoadOptions MeasureRequests(int requests) {
  LoadOptions options;
  options.requests = requests;
  options.warmup = absl::ZeroDuration();
  return options;
}

void NoProgress(double) {}

TEST(PoissonArrivalsTest, SameSeedSameArrivals) {
  PoissonArrivals a(100, 5), b(100, 5), c(100, 6);
  const absl::Duration first = a.Next();
  EXPECT_EQ(first, b.Next());
  EXPECT_NE(first, c.Next());
}

// Gaps of an exponential distribution: their mean is 1/rate and so is their
// standard deviation (a uniform or constant gap would differ).
TEST(PoissonArrivalsTest, GapsAreExponential) {
  constexpr int kCount = 100000;
  PoissonArrivals arrivals(50, 1);
  absl::Duration last = absl::ZeroDuration();
  double sum = 0, sum_of_squares = 0;
  for (int i = 0; i < kCount; ++i) {
    const absl::Duration now = arrivals.Next();
    const double gap = absl::ToDoubleSeconds(now - last);
    ASSERT_GE(gap, 0);
    sum += gap;
    sum_of_squares += gap * gap;
    last = now;
  }
  const double mean = sum / kCount;
  EXPECT_NEAR(mean, 0.02, 0.0004);
  EXPECT_NEAR(std::sqrt(sum_of_squares / kCount - mean * mean), 0.02, 0.0006);
}

TEST(GenerateLoadTest, ClosedLoopCountsRequestsImagesAndBatches) {
  FakeVisionServer server(AnswerCup);
  VisionClient client(server.address());
  const LoadReport report =
      GenerateLoad(client, OneRequest(3), MeasureRequests(50), NoProgress);
  EXPECT_EQ(server.call_count(), 50);
  EXPECT_EQ(report.requests, 50);
  EXPECT_EQ(report.images, 150);
  EXPECT_EQ(report.latency.count(), 50);
  EXPECT_THAT(report.codes, ElementsAre(Pair("OK", 50)));
  EXPECT_DOUBLE_EQ(report.mean_batch_size, 4);
  EXPECT_EQ(report.stages.inference, absl::Nanoseconds(2'500'000));
  EXPECT_EQ(report.stages.total, absl::Seconds(1));
  EXPECT_EQ(report.stages.decode, absl::ZeroDuration());
  EXPECT_NEAR(report.images_per_second * absl::ToDoubleSeconds(report.elapsed),
              150, 1e-6);
}

TEST(GenerateLoadTest, ClosedLoopKeepsSoManyInFlight) {
  FakeVisionServer server(AnswerCup);
  server.Hang();
  VisionClient client(server.address());
  LoadOptions options = MeasureRequests(8);
  options.max_in_flight = 4;
  options.deadline = absl::Milliseconds(200);
  const LoadReport report =
      GenerateLoad(client, OneRequest(1), options, NoProgress);
  EXPECT_THAT(report.codes, ElementsAre(Pair("DEADLINE_EXCEEDED", 8)));
  EXPECT_EQ(report.images, 0);
  EXPECT_EQ(report.latency.count(), 0);
  EXPECT_EQ(report.mean_batch_size, 0);
}

TEST(GenerateLoadTest, RequestsTakeTurns) {
  std::atomic<int> bytes{0};
  FakeVisionServer server(
      [&](const v1::ClassifyRequest& request, v1::ClassifyResponse* response) {
        bytes += request.images(0).encoded().size();
        return AnswerCup(request, response);
      });
  VisionClient client(server.address());
  std::vector<v1::ClassifyRequest> requests(2);
  requests[0].add_images()->set_encoded("a");
  requests[1].add_images()->set_encoded(std::string(100, 'b'));
  GenerateLoad(client, requests, MeasureRequests(6), NoProgress);
  EXPECT_EQ(bytes, 303);
}

TEST(GenerateLoadTest, ErrorsAreCountedByCodeAndReason) {
  std::atomic<int> calls{0};
  FakeVisionServer server([&](const v1::ClassifyRequest& request,
                              v1::ClassifyResponse* response) {
    return ++calls % 2 == 0 ? FakeError(grpc::StatusCode::RESOURCE_EXHAUSTED,
                                        "full", "QUEUE_FULL")
                            : AnswerCup(request, response);
  });
  VisionClient client(server.address());
  const LoadReport report =
      GenerateLoad(client, OneRequest(1), MeasureRequests(10), NoProgress);
  EXPECT_THAT(
      report.codes,
      ElementsAre(Pair("OK", 5), Pair("RESOURCE_EXHAUSTED (QUEUE_FULL)", 5)));
  EXPECT_EQ(report.images, 5);
}

TEST(GenerateLoadTest, OpenLoopSendsWhatIsDue) {
  FakeVisionServer server(AnswerCup);
  VisionClient client(server.address());
  LoadOptions options = MeasureRequests(40);
  options.rate = 1000;
  const LoadReport report =
      GenerateLoad(client, OneRequest(1), options, NoProgress);
  EXPECT_THAT(report.codes, ElementsAre(Pair("OK", 40)));
  // The last request is due after the sum of 40 gaps, by the seed.
  PoissonArrivals arrivals(1000, options.seed);
  absl::Duration last_due;
  for (int i = 0; i < 40; ++i) last_due = arrivals.Next();
  EXPECT_GE(report.elapsed, last_due);
}

// A server that answers nothing for a while: what waits here must count as
// late.
TEST(GenerateLoadTest, OpenLoopLatencyRunsFromWhenARequestWasDue) {
  FakeVisionServer server(AnswerCup);
  server.Hang();
  VisionClient client(server.address());
  LoadOptions options = MeasureRequests(3);
  options.rate = 1e6;         // All are due at once,
  options.max_in_flight = 1;  // and go one after the other,
  options.deadline =
      absl::Milliseconds(100);  // so that the first uses up all time.
  const LoadReport report =
      GenerateLoad(client, OneRequest(1), options, NoProgress);
  EXPECT_THAT(report.codes, ElementsAre(Pair("DEADLINE_EXCEEDED", 3)));
  EXPECT_LE(server.call_count(), 1);
}

TEST(GenerateLoadTest, WarmUpIsNotMeasured) {
  FakeVisionServer server(AnswerCup);
  VisionClient client(server.address());
  LoadOptions options = MeasureRequests(5);
  options.warmup = absl::Milliseconds(100);
  const LoadReport report =
      GenerateLoad(client, OneRequest(1), options, NoProgress);
  EXPECT_EQ(report.requests, 5);
  EXPECT_EQ(report.latency.count(), 5);
  EXPECT_GT(server.call_count(), 5);
}

TEST(GenerateLoadTest, RunsForTheDurationAndTellsProgress) {
  FakeVisionServer server(AnswerCup);
  VisionClient client(server.address());
  LoadOptions options;
  options.warmup = absl::ZeroDuration();
  options.duration = absl::Milliseconds(500);
  std::vector<double> fractions;
  const LoadReport report =
      GenerateLoad(client, OneRequest(1), options,
                   [&](double fraction) { fractions.push_back(fraction); });
  EXPECT_EQ(report.elapsed, absl::Milliseconds(500));
  EXPECT_GT(report.images, 0);
  ASSERT_FALSE(fractions.empty());
  EXPECT_TRUE(std::is_sorted(fractions.begin(), fractions.end()));
}

}  // namespace
}  // namespace sfmamba::client
