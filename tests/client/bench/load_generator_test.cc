#include "client/bench/load_generator.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/fake_vision_server.h"

namespace sfmamba::client {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

// Returns a load of Classify requests, one for each of `pictures`. Each request
// contains its picture `images` times.
Load MakeLoad(const std::vector<std::string>& pictures, int images = 1) {
  Load load;
  for (const std::string& picture : pictures) {
    v1::ClassifyRequest request;
    for (int i = 0; i < images; ++i) request.add_images()->set_encoded(picture);
    load.requests.emplace_back().message = request;
  }
  return load;
}

// Adds `count` arrivals to the load. All are due at the start, and the requests
// are used in turn.
Load AllAtOnce(Load load, int count) {
  for (int i = 0; i < count; ++i) {
    load.arrivals.push_back(
        {absl::ZeroDuration(), i % static_cast<int>(load.requests.size())});
  }
  return load;
}

void SetDeadline(absl::Duration deadline, Load* load) {
  for (LoadRequest& request : load->requests) request.deadline = deadline;
}

LoadOptions WithoutWarmup() {
  LoadOptions options;
  options.warmup = absl::ZeroDuration();
  options.duration = absl::InfiniteDuration();
  return options;
}

LoadOptions MeasureRequests(int requests) {
  LoadOptions options = WithoutWarmup();
  options.requests = requests;
  return options;
}

LoadReport Generate(const FakeVisionServer& server, const Load& load,
                    const LoadOptions& options, int channels = 1) {
  VisionClientOptions client_options;
  client_options.share_connections = false;
  client_options.retry = false;
  std::vector<std::unique_ptr<VisionClient>> clients;
  for (int i = 0; i < channels; ++i) {
    clients.push_back(
        std::make_unique<VisionClient>(server.address(), client_options));
  }
  return GenerateLoad(clients, load, options, [](double) {});
}

TEST(ClosedLoopTest, CountsRequestsImagesAndBatches) {
  FakeVisionServer server(AnswerCup);
  const LoadReport report =
      Generate(server, MakeLoad({"x"}, 3), MeasureRequests(50));
  EXPECT_EQ(server.call_count(), 50);
  EXPECT_EQ(report.all.requests, 50);
  EXPECT_EQ(report.all.sent, 50);
  EXPECT_EQ(report.all.in_time, 50);
  EXPECT_EQ(report.images, 150);
  EXPECT_EQ(report.all.latency.count(), 50);
  EXPECT_THAT(report.all.codes, ElementsAre(Pair("OK", 50)));
  EXPECT_DOUBLE_EQ(report.mean_batch_size, 4);
  EXPECT_EQ(report.stages.inference, absl::Nanoseconds(2'500'000));
  EXPECT_EQ(report.stages.total, absl::Seconds(1));
  EXPECT_EQ(report.stages.decode, absl::ZeroDuration());
  EXPECT_NEAR(report.images_per_second * absl::ToDoubleSeconds(report.elapsed),
              150, 1e-6);
}

TEST(ClosedLoopTest, KeepsSoManyInFlight) {
  FakeVisionServer server(AnswerCup);
  server.Hang();
  for (const int threads : {1, 3}) {
    Load load = MakeLoad({"x"});
    SetDeadline(absl::Seconds(2), &load);
    LoadOptions options = MeasureRequests(8);
    options.concurrency = 4;
    options.threads = threads;
    const LoadReport report = Generate(server, load, options);
    EXPECT_EQ(report.peak_in_flight, 4);
    EXPECT_THAT(report.all.codes, ElementsAre(Pair("DEADLINE_EXCEEDED", 8)));
    EXPECT_EQ(report.all.failed, 8);
    EXPECT_EQ(report.images, 0);
    EXPECT_EQ(report.all.latency.count(), 0);
    EXPECT_EQ(report.mean_batch_size, 0);
  }
}

TEST(ClosedLoopTest, RequestsTakeTurns) {
  std::atomic<int> bytes{0};
  FakeVisionServer server(
      [&](const v1::ClassifyRequest& request, v1::ClassifyResponse* response) {
        bytes += request.images(0).encoded().size();
        return AnswerCup(request, response);
      });
  LoadOptions options = MeasureRequests(6);
  options.threads = 2;
  Generate(server, MakeLoad({"a", std::string(100, 'b')}), options);
  EXPECT_EQ(bytes, 303);
}

TEST(ClosedLoopTest, WarmUpIsNotMeasured) {
  FakeVisionServer server(AnswerCup);
  LoadOptions options = MeasureRequests(5);
  options.warmup = absl::Milliseconds(100);
  const LoadReport report = Generate(server, MakeLoad({"x"}), options);
  EXPECT_EQ(report.all.requests, 5);
  EXPECT_EQ(report.all.latency.count(), 5);
  EXPECT_GT(server.call_count(), 5);
}

TEST(ClosedLoopTest, RunsForTheDurationAndTellsProgress) {
  FakeVisionServer server(AnswerCup);
  std::vector<std::unique_ptr<VisionClient>> clients;
  clients.push_back(std::make_unique<VisionClient>(server.address()));
  LoadOptions options = WithoutWarmup();
  options.duration = absl::Milliseconds(500);
  std::vector<double> fractions;
  const LoadReport report =
      GenerateLoad(clients, MakeLoad({"x"}), options,
                   [&](double fraction) { fractions.push_back(fraction); });
  EXPECT_EQ(report.elapsed, absl::Milliseconds(500));
  EXPECT_GT(report.images, 0);
  ASSERT_FALSE(fractions.empty());
  EXPECT_TRUE(std::is_sorted(fractions.begin(), fractions.end()));
}

TEST(ClosedLoopTest, ErrorsAreCountedByCodeAndReason) {
  std::atomic<int> calls{0};
  FakeVisionServer server([&](const v1::ClassifyRequest& request,
                              v1::ClassifyResponse* response) {
    return ++calls % 2 == 0 ? FakeError(grpc::StatusCode::RESOURCE_EXHAUSTED,
                                        "full", "QUEUE_FULL")
                            : AnswerCup(request, response);
  });
  const LoadReport report =
      Generate(server, MakeLoad({"x"}), MeasureRequests(10));
  EXPECT_THAT(
      report.all.codes,
      ElementsAre(Pair("OK", 5), Pair("RESOURCE_EXHAUSTED (QUEUE_FULL)", 5)));
  EXPECT_EQ(report.images, 5);
}

// An unavailable server refuses at once. Without pauses, the generator would
// send far too many requests.
TEST(ClosedLoopTest, PausesWhileTheServerIsUnavailable) {
  FakeVisionServer server(
      [](const v1::ClassifyRequest&, v1::ClassifyResponse*) {
        return FakeError(grpc::StatusCode::UNAVAILABLE, "draining", "DRAINING");
      });
  LoadOptions options = WithoutWarmup();
  options.duration = absl::Milliseconds(300);
  options.concurrency = 4;
  options.threads = 2;
  const LoadReport report = Generate(server, MakeLoad({"x"}), options);
  // There are attempts at the start and after pauses of 5, 10, 20, 40, 80 and
  // 160 ms.
  EXPECT_GE(report.all.requests, 4);
  EXPECT_LE(report.all.requests, 4 * 7);
  EXPECT_EQ(report.all.requests, server.call_count());
  EXPECT_THAT(report.all.codes,
              ElementsAre(Pair("UNAVAILABLE (DRAINING)", report.all.requests)));
  EXPECT_EQ(report.elapsed, absl::Milliseconds(300));
}

// Several threads and channels share the arrivals. Each arrival must be sent
// once.
TEST(OpenLoopTest, SendsEachArrivalOnce) {
  std::array<std::atomic<int>, 2> calls{};
  FakeVisionServer server(
      [&](const v1::ClassifyRequest& request, v1::ClassifyResponse* response) {
        ++calls[request.images(0).encoded() == "b"];
        return AnswerCup(request, response);
      });
  Load load = MakeLoad({"a", "b"});
  for (int i = 0; i < 60; ++i) {
    load.arrivals.push_back({absl::Microseconds(200 * i), i % 3 == 0});
  }
  LoadOptions options = WithoutWarmup();
  options.threads = 3;
  const LoadReport report = Generate(server, load, options, /*channels=*/4);
  EXPECT_EQ(calls[0], 40);
  EXPECT_EQ(calls[1], 20);
  EXPECT_EQ(server.connection_count(), 4);
  EXPECT_EQ(report.all.requests, 60);
  EXPECT_THAT(report.all.codes, ElementsAre(Pair("OK", 60)));
  // The last request is due 59 * 200 us after the start, and its answer arrives
  // later.
  EXPECT_GE(report.elapsed, absl::Microseconds(11800));
}

// All requests must be sent although the server never answers.
TEST(OpenLoopTest, DoesNotWaitForAnswers) {
  FakeVisionServer server(AnswerCup);
  server.Hang();
  Load load = AllAtOnce(MakeLoad({"x"}), 300);
  SetDeadline(absl::Seconds(2), &load);
  const LoadReport report = Generate(server, load, WithoutWarmup());
  EXPECT_EQ(report.peak_in_flight, 300);
  EXPECT_THAT(report.all.codes, ElementsAre(Pair("DEADLINE_EXCEEDED", 300)));
}

TEST(OpenLoopTest, WhatExceedsTheCapIsCountedNotSent) {
  FakeVisionServer server(AnswerCup);
  server.Hang();
  Load load = AllAtOnce(MakeLoad({"x"}), 10);
  SetDeadline(absl::Seconds(3), &load);
  LoadOptions options = WithoutWarmup();
  options.max_in_flight = 3;
  const LoadReport report = Generate(server, load, options);
  EXPECT_EQ(report.all.requests, 10);
  EXPECT_EQ(report.all.sent, 3);
  EXPECT_EQ(report.all.over_cap, 7);
  EXPECT_EQ(report.peak_in_flight, 3);
  EXPECT_LE(server.call_count(), 3);
}

// A request must not be sent after its deadline.
TEST(OpenLoopTest, WhatIsPastItsDeadlineIsCountedNotSent) {
  FakeVisionServer server(AnswerCup);
  Load load = AllAtOnce(MakeLoad({"x"}), 10);
  SetDeadline(absl::Nanoseconds(1), &load);
  const LoadReport report = Generate(server, load, WithoutWarmup());
  EXPECT_EQ(report.all.requests, 10);
  EXPECT_EQ(report.all.missed, 10);
  EXPECT_EQ(report.all.sent, 0);
  EXPECT_EQ(server.call_count(), 0);
}

TEST(OpenLoopTest, LatencyRunsFromWhenARequestWasDue) {
  FakeVisionServer server(AnswerCup);
  Load load = AllAtOnce(MakeLoad({"x"}), 20);
  const LoadReport report = Generate(server, load, WithoutWarmup());
  // All requests are due at time 0, so the slowest answer is also the last one.
  EXPECT_NEAR(absl::ToDoubleSeconds(report.all.latency.Max()),
              absl::ToDoubleSeconds(report.elapsed), 1e-8);
  EXPECT_GT(report.delay.Max(), absl::ZeroDuration());
  EXPECT_LT(report.all.latency_from_sending.Mean(), report.all.latency.Mean());
}

TEST(OpenLoopTest, EachRequestHasItsOwnDeadlineAndClass) {
  FakeVisionServer server(
      AnswerCup, nullptr, [](const v1::SegmentRequest&, v1::SegmentResponse*) {
        return FakeError(grpc::StatusCode::NOT_FOUND, "", "MODEL_NOT_FOUND");
      });
  Load load = MakeLoad({"a"});
  load.class_names = {"pictures", "maps"};
  LoadRequest& segment = load.requests.emplace_back();
  segment.message = v1::SegmentRequest();
  segment.class_index = 1;
  LoadRequest& hopeless = load.requests.emplace_back(load.requests[0]);
  hopeless.deadline = absl::Nanoseconds(1);
  const LoadReport report =
      Generate(server, AllAtOnce(load, 9), WithoutWarmup());
  ASSERT_EQ(report.classes.size(), 2);
  EXPECT_EQ(report.classes[0].requests, 6);
  EXPECT_EQ(report.classes[0].in_time, 3);
  EXPECT_EQ(report.classes[0].missed, 3);
  EXPECT_THAT(report.classes[1].codes,
              ElementsAre(Pair("NOT_FOUND (MODEL_NOT_FOUND)", 3)));
  EXPECT_EQ(report.all.requests, 9);
}

TEST(OpenLoopTest, WarmUpIsSentAndNotCounted) {
  FakeVisionServer server(AnswerCup);
  Load load = AllAtOnce(MakeLoad({"x"}), 7);
  load.arrivals.push_back({absl::Milliseconds(20), 0});
  LoadOptions options = WithoutWarmup();
  options.warmup = absl::Milliseconds(20);
  const LoadReport report = Generate(server, load, options);
  EXPECT_EQ(server.call_count(), 8);
  EXPECT_EQ(report.all.requests, 1);
  EXPECT_THAT(report.all.codes, ElementsAre(Pair("OK", 1)));
}

}  // namespace
}  // namespace sfmamba::client
