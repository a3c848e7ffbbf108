#include "server/rpc/stream/stream_call.h"

#include <algorithm>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/rpc/stream/predict_stream.h"
#include "tests/server/picture.h"
#include "tests/server/rpc/stream/stream_fixture.h"
#include "tests/testing/patience.h"

namespace sfmamba::rpc {
namespace {

using grpc::StatusCode;

// These limits are stated in docs/serving.md.
constexpr absl::Duration kMostIdle = absl::Minutes(10);
constexpr int kDefaultInFlight = 16;

using StreamCallTest = StreamTest;

TEST_F(StreamCallTest, WhatIsDoneFirstIsAnsweredFirst) {
  Start();
  server_->gate().Close();
  Stream stream(server_.get());
  stream.Send(Grey("slow", 1));
  stream.Send(Unknown("refused"));
  EXPECT_EQ(stream.Next().correlation_id(), "refused");
  server_->gate().Open();
  EXPECT_EQ(stream.Next().correlation_id(), "slow");
  stream.SendNoMore();
  EXPECT_EQ(stream.ExpectEnd().code, StatusCode::OK);
}

TEST_F(StreamCallTest, KeepsTheOrderIfAsked) {
  Start();
  server_->gate().Close();
  Stream stream(server_.get());
  stream.Send(Config(8, /*preserve_order=*/true));
  stream.Send(Grey("slow", 1));
  stream.Send(Unknown("refused"));
  stream.SendNoMore();
  EXPECT_EQ(
      server_->WaitForSum("sfmamba_requests_total", {R"(code="NOT_FOUND")"}, 1),
      1);
  server_->gate().Open();
  EXPECT_EQ(stream.Next().correlation_id(), "slow");
  const StreamPredictResponse refused = stream.Next();
  EXPECT_EQ(refused.correlation_id(), "refused");
  EXPECT_EQ(EndingOf(refused.error()).code, StatusCode::NOT_FOUND);
  EXPECT_EQ(EndingOf(refused.error()).reason, "MODEL_NOT_FOUND");
  EXPECT_EQ(stream.ExpectEnd().code, StatusCode::OK);
}

TEST_F(StreamCallTest, HasAtMostSoManyInFlight) {
  Start("max_queue_delay {} max_batch_size: 1");
  server_->gate().Close();
  Stream stream(server_.get());
  stream.Send(Config(3));
  for (int i = 0; i < 10; ++i) stream.Send(Grey(absl::StrCat(i), i));
  stream.SendNoMore();
  EXPECT_EQ(InFlight(3), 3);
  // The server would have begun more requests by now if it had no limit.
  server_->AwaitRoundTrip();
  EXPECT_EQ(InFlight(3), 3);
  server_->gate().Open();
  std::set<std::string> answered;
  for (int i = 0; i < 10; ++i) answered.insert(stream.Next().correlation_id());
  EXPECT_EQ(answered.size(), 10);
  EXPECT_EQ(stream.ExpectEnd().code, StatusCode::OK);
}

TEST_F(StreamCallTest, FiveHundredPicturesInFlightAreAllAnswered) {
  constexpr int kMost = PredictStream::kMostInFlight;
  Start();
  server_->gate().Close();
  StreamPredictRequest message;
  message.mutable_classify()->add_images()->set_encoded(
      server::EncodePng(server::Gradient(20, 10)));
  Stream stream(server_.get());
  stream.Send(Config(kMost));
  for (int i = 0; i < kMost; ++i) {
    message.set_correlation_id(absl::StrCat(i));
    ASSERT_TRUE(stream.Send(message));
  }
  EXPECT_EQ(InFlight(kMost), kMost);
  server_->gate().Open();
  for (int i = 0; i < kMost; ++i) {
    const StreamPredictResponse answer = stream.Next();
    ASSERT_TRUE(answer.has_classify()) << answer.ShortDebugString();
  }
  stream.SendNoMore();
  EXPECT_EQ(stream.ExpectEnd().code, StatusCode::OK);
}

TEST_F(StreamCallTest, BytesBoundWhatIsInFlightBeyondSixtyFour) {
  constexpr int kRequests = 80;
  constexpr int kMost = StreamCall::kAlwaysInFlight;
  Start("max_queue_delay {} max_batch_size: 1");
  server_->gate().Close();
  StreamPredictRequest message = Grey("", 1);
  v1::PixelBuffer* pixels =
      message.mutable_classify()->mutable_images(0)->mutable_pixels();
  pixels->set_format(v1::PixelBuffer::GRAY8);
  pixels->set_width(1024);
  pixels->set_height(1100);
  pixels->set_data(std::string(1024 * 1100, 'a'));
  Stream stream(server_.get());
  std::thread sender([&] {
    stream.Send(Config(PredictStream::kMostInFlight));
    for (int i = 0; i < kRequests; ++i) {
      message.set_correlation_id(absl::StrCat(i));
      stream.Send(message);
    }
    stream.SendNoMore();
  });
  EXPECT_EQ(InFlight(kMost), kMost);
  // The server would have begun more requests by now if it had no limit.
  server_->AwaitRoundTrip();
  EXPECT_EQ(InFlight(kMost), kMost);
  server_->gate().Open();
  for (int i = 0; i < kRequests; ++i) EXPECT_TRUE(stream.Next().has_classify());
  Join(sender, "the last request sent");
  EXPECT_EQ(stream.ExpectEnd().code, StatusCode::OK);
}

TEST_F(StreamCallTest, WithoutAConfigurationSixteenAreInFlight) {
  Start("max_queue_delay {} max_batch_size: 1");
  server_->gate().Close();
  Stream stream(server_.get());
  for (int i = 0; i < 2 * kDefaultInFlight; ++i) {
    stream.Send(Grey(absl::StrCat(i), i));
  }
  EXPECT_EQ(InFlight(kDefaultInFlight), kDefaultInFlight);
  // The server would have begun more requests by now if it had no limit.
  server_->AwaitRoundTrip();
  EXPECT_EQ(InFlight(kDefaultInFlight), kDefaultInFlight);
  server_->gate().Open();
}

TEST_F(StreamCallTest, CancellingItCancelsItsRequests) {
  Start();
  server_->gate().Close();
  {
    Stream stream(server_.get());
    stream.Send(Grey("0", 0));
    server_->gate().WaitForBatch();
    for (int i = 1; i < 5; ++i) stream.Send(Grey(absl::StrCat(i), i));
    EXPECT_EQ(InFlight(5), 5);
    stream.Cancel();
  }
  const auto cancelled = [this](double requests) {
    return server_->WaitForSum("sfmamba_requests_total",
                               {R"(code="CANCELLED")"}, requests);
  };
  EXPECT_EQ(cancelled(4), 4) << "those that wait";
  server_->gate().Open();
  EXPECT_EQ(InFlight(0), 0);
  EXPECT_EQ(cancelled(5), 5);
  ExpectAlive();
}

TEST_F(StreamCallTest, ADeadlineEndsItAndItsRequests) {
  Start();
  server_->gate().Close();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::milliseconds(300));
  auto stream = server_->stub().StreamPredict(&context);
  stream->Write(Grey("a", 1));
  StreamPredictResponse answer;
  // The client or the server may notice the deadline first. If it is the
  // server, an answer arrives.
  while (stream->Read(&answer)) {
    EXPECT_EQ(answer.error().code(),
              static_cast<int>(StatusCode::DEADLINE_EXCEEDED));
  }
  EXPECT_EQ(stream->Finish().error_code(), StatusCode::DEADLINE_EXCEEDED);
  server_->gate().Open();
  EXPECT_EQ(InFlight(0), 0);
}

TEST_F(StreamCallTest, EndsWhenNothingHasBeenAskedForLong) {
  Start();
  Stream idle(server_.get()), stream(server_.get());
  for (Stream* each : {&idle, &stream}) {
    each->Send(Grey("a", 1));
    EXPECT_TRUE(each->Next().has_classify());
  }
  EXPECT_EQ(InFlight(0), 0);
  server_->AdvanceClock(kMostIdle / 2);
  stream.Send(Unknown("b"));
  EXPECT_EQ(stream.Next().correlation_id(), "b");
  EXPECT_EQ(InFlight(0), 0);
  server_->AdvanceClock(kMostIdle / 2);
  EXPECT_EQ(idle.ExpectEnd().code, StatusCode::OK);
  stream.Send(Unknown("c"));
  EXPECT_EQ(stream.Next().correlation_id(), "c") << "it was idle half as long";
  EXPECT_EQ(InFlight(0), 0);
  server_->AdvanceClock(kMostIdle);
  EXPECT_EQ(stream.ExpectEnd().code, StatusCode::OK);
}

TEST_F(StreamCallTest, AnswersThatAreNotReadEndIt) {
  Start("max_queue_delay {}", v1::ServerConfig(), true,
        model::VisionTask::kSegmentation);
  Stream stream(server_.get());
  StreamPredictRequest segment;
  // The answer is a map with one byte per pixel. It exceeds gRPC's flow-control
  // window.
  segment.mutable_segment()->add_images()->set_encoded(
      server::EncodePng(server::WithRed(1000, 600, {10, 10, 20, 20})));
  segment.mutable_segment()->mutable_params()->set_encoding(
      v1::SegmentParams::RAW_INDEX);
  segment.set_correlation_id("first");
  Stream polite(server_.get());
  ASSERT_TRUE(polite.Send(segment));
  EXPECT_TRUE(polite.Next().has_segment());
  for (int i = 0; i < 40; ++i) {
    segment.set_correlation_id(absl::StrCat(i));
    ASSERT_TRUE(stream.Send(segment));
  }
  // Waits until all requests that may be in flight are computed. They then stay
  // in flight, because the answer that is being sent does not fit into the
  // flow-control window.
  while (server_->Sum("sfmamba_requests_total", {R"(code="OK")"}) <
             1 + kDefaultInFlight ||
         server_->Sum("sfmamba_in_flight_requests", {}) < kDefaultInFlight) {
    std::this_thread::yield();
  }
  server_->AdvanceClock(absl::Seconds(21));
  EXPECT_EQ(InFlight(0), 0);
  EXPECT_EQ(server_->WaitForSum("sfmamba_memory_held_bytes", {}, 0), 0);
  // The stream whose client reads its answers continues.
  ASSERT_TRUE(polite.Send(segment));
  EXPECT_TRUE(polite.Next().has_segment());
}

// Sends ten thousand requests. The client reads nothing until the server
// accepts no more requests. Afterwards it reads slowly.
TEST_F(StreamCallTest, ASlowReaderHoldsBackItsOwnRequests) {
  constexpr int kRequests = 10'000;
  constexpr int kMost = 32;
  Start();
  grpc::ChannelArguments arguments;
  // Without this probe, gRPC's flow-control window stays small.
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto stub = v1::VisionService::NewStub(grpc::CreateCustomChannel(
      absl::StrCat("127.0.0.1:", server_->server().port()),
      grpc::InsecureChannelCredentials(), arguments));
  Stream stream(*stub);
  stream.Send(Config(kMost, /*preserve_order=*/true));
  std::thread sender([&stream] {
    for (int i = 0; i < kRequests; ++i) {
      if (!stream.Send(Grey(absl::StrCat(i), i % 256))) return;
    }
    stream.SendNoMore();
  });
  // A request stays in flight after it was computed, until its answer is sent.
  const auto ended = [this] {
    return server_->Sum("sfmamba_requests_total",
                        {R"(method="StreamPredict")", R"(code="OK")"});
  };
  for (double before = -1, now = 0; now != before || now < kMost;) {
    before = std::exchange(now, ended());
    server_->AwaitRoundTrip();
    InFlight(kMost);
  }
  EXPECT_LT(ended(), kRequests / 2);
  double most = 0;
  int answered = 0;
  StreamPredictResponse answer;
  while (stream.Read(&answer)) {
    ASSERT_EQ(answer.correlation_id(), absl::StrCat(answered));
    ASSERT_TRUE(answer.has_classify()) << answer.ShortDebugString();
    if (answered++ % 1000 == 0) {
      server_->AwaitRoundTrip();
      most = std::max(most, server_->Sum("sfmamba_in_flight_requests", {}));
    }
  }
  Join(sender, "the last request sent");
  EXPECT_EQ(answered, kRequests);
  EXPECT_LE(most, kMost);
  EXPECT_EQ(stream.Finish().code, StatusCode::OK);
  EXPECT_EQ(InFlight(0), 0);
  EXPECT_EQ(server_->WaitForSum("sfmamba_memory_held_bytes", {}, 0), 0);
}

}  // namespace
}  // namespace sfmamba::rpc
