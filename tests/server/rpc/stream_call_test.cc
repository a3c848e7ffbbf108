#include "server/rpc/stream_call.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "tests/server/picture.h"
#include "tests/server/vision_service_fixture.h"
#include "tests/testing/patience.h"

namespace sfmamba::rpc {
namespace {

using grpc::StatusCode;
using v1::StreamPredictRequest;
using v1::StreamPredictResponse;

constexpr char kInFlight[] = "sfmamba_in_flight_requests";

StreamPredictRequest Config(int max_in_flight, bool preserve_order = false) {
  StreamPredictRequest message;
  message.mutable_config()->set_max_in_flight(max_in_flight);
  message.mutable_config()->set_preserve_order(preserve_order);
  return message;
}

StreamPredictRequest Grey(const std::string& id, int grey) {
  StreamPredictRequest message;
  message.set_correlation_id(id);
  *message.mutable_classify() = server::GreyRequest(grey);
  return message;
}

// Refused at once.
StreamPredictRequest Unknown(const std::string& id) {
  StreamPredictRequest message = Grey(id, 1);
  message.mutable_classify()->set_model("unknown");
  return message;
}

server::Ending EndingOf(const google::rpc::Status& error) {
  return server::EndingOf(grpc::Status(static_cast<StatusCode>(error.code()),
                                       error.message(),
                                       error.SerializeAsString()));
}

// The client's end of a stream. Whoever does not end it leaves it cancelled.
class Stream {
 public:
  explicit Stream(server::RunningServer* server) : Stream(server->stub()) {}
  explicit Stream(v1::VisionService::Stub& stub)
      : stream_(stub.StreamPredict(&context_)) {}
  ~Stream() {
    if (stream_ == nullptr) return;
    context_.TryCancel();
    (void)stream_->Finish();
  }

  bool Send(const StreamPredictRequest& message) {
    return stream_->Write(message);
  }
  void SendNoMore() { stream_->WritesDone(); }
  bool Read(StreamPredictResponse* message) { return stream_->Read(message); }
  // The next one, which must come.
  StreamPredictResponse Next() {
    StreamPredictResponse message;
    EXPECT_TRUE(stream_->Read(&message)) << "the stream has ended";
    return message;
  }
  void Cancel() { context_.TryCancel(); }
  server::Ending Finish() {
    const grpc::Status status = stream_->Finish();
    stream_ = nullptr;
    return server::EndingOf(status, &context_);
  }
  // That nothing but the end comes.
  server::Ending ExpectEnd() {
    StreamPredictResponse message;
    EXPECT_FALSE(Read(&message)) << message.ShortDebugString();
    return Finish();
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<
      grpc::ClientReaderWriter<StreamPredictRequest, StreamPredictResponse>>
      stream_;
};

class StreamCallTest : public server::VisionServiceTest {
 protected:
  double InFlight(double value) {
    return server_->WaitForSum(kInFlight, {}, value);
  }
};

TEST_F(StreamCallTest, AnswersAsTheUnaryMethodsDo) {
  Start();
  std::vector<std::string> unary;
  for (int i = 0; i < 3; ++i) {
    v1::ClassifyResponse response;
    ASSERT_EQ(Classify(server::GreyRequest(50 * i), &response).code,
              StatusCode::OK);
    unary.push_back(response.SerializeAsString());
  }
  Stream stream(server_.get());
  for (int i = 0; i < 3; ++i) {
    stream.Send(Grey(absl::StrCat("id", i), 50 * i));
  }
  stream.SendNoMore();
  std::set<std::string> answered;
  for (int i = 0; i < 3; ++i) {
    const StreamPredictResponse answer = stream.Next();
    ASSERT_TRUE(answer.has_classify()) << answer.ShortDebugString();
    answered.insert(answer.correlation_id());
    const int number = answer.correlation_id().back() - '0';
    EXPECT_EQ(answer.classify().SerializeAsString(), unary[number]);
  }
  EXPECT_EQ(answered, (std::set<std::string>{"id0", "id1", "id2"}));
  EXPECT_EQ(stream.ExpectEnd().code, StatusCode::OK);
  EXPECT_EQ(
      server_->WaitForSum("sfmamba_requests_total",
                          {R"(method="StreamPredict")", R"(code="OK")"}, 3),
      3);
  EXPECT_EQ(InFlight(0), 0);
}

TEST_F(StreamCallTest, DetectsAndSegmentsToo) {
  server::WriteModel(repository_, "finder", "1", "",
                     model::VisionTask::kDetection);
  server::WriteModel(repository_, "painter", "1", "",
                     model::VisionTask::kSegmentation);
  Start();
  Stream stream(server_.get());
  stream.Send(Config(2, /*preserve_order=*/true));
  StreamPredictRequest detect;
  detect.set_correlation_id("d");
  *detect.mutable_detect()->add_images() = server::GreyImage(1);
  detect.mutable_detect()->set_model("finder");
  stream.Send(detect);
  StreamPredictRequest segment;
  segment.set_correlation_id("s");
  *segment.mutable_segment()->add_images() = server::GreyImage(1);
  segment.mutable_segment()->set_model("painter");
  stream.Send(segment);
  stream.SendNoMore();
  const StreamPredictResponse first = stream.Next();
  EXPECT_EQ(first.correlation_id(), "d");
  EXPECT_TRUE(first.has_detect()) << first.ShortDebugString();
  const StreamPredictResponse second = stream.Next();
  EXPECT_EQ(second.correlation_id(), "s");
  EXPECT_TRUE(second.has_segment()) << second.ShortDebugString();
  EXPECT_EQ(stream.ExpectEnd().code, StatusCode::OK);
}

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

TEST_F(StreamCallTest, AnErrorIsOfOneRequestAlone) {
  Start();
  server_->gate().Close();
  Stream stream(server_.get());
  stream.Send(Config(8, /*preserve_order=*/true));
  stream.Send(Grey("a", 1));
  stream.Send(Grey("a", 2));                    // In flight already.
  stream.Send(Grey("", 3));                     // No id.
  stream.Send(Grey(std::string(129, 'x'), 3));  // A longer one.
  StreamPredictRequest nothing;
  nothing.set_correlation_id("nothing");
  stream.Send(nothing);
  StreamPredictRequest empty;
  empty.set_correlation_id("empty");
  empty.mutable_classify();
  stream.Send(empty);
  stream.Send(Grey(std::string(128, 'x'), 4));
  EXPECT_EQ(server_->WaitForSum("sfmamba_requests_total",
                                {R"(code="INVALID_ARGUMENT")"}, 5),
            5);
  server_->gate().Open();
  EXPECT_TRUE(stream.Next().has_classify());
  for (const char* field : {"correlation_id", "correlation_id",
                            "correlation_id", "request", "images"}) {
    const server::Ending refused = EndingOf(stream.Next().error());
    EXPECT_EQ(refused.code, StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(refused.reason, "INVALID_FIELD");
    EXPECT_EQ(refused.field, field);
  }
  EXPECT_TRUE(stream.Next().has_classify());
  // The id is free again.
  stream.Send(Grey("a", 2));
  EXPECT_TRUE(stream.Next().has_classify());
  stream.SendNoMore();
  EXPECT_EQ(stream.ExpectEnd().code, StatusCode::OK);
}

TEST_F(StreamCallTest, AWrongConfigurationEndsIt) {
  Start();
  for (const int max_in_flight : {0, -1, 65}) {
    Stream stream(server_.get());
    stream.Send(Config(max_in_flight));
    const server::Ending ending = stream.ExpectEnd();
    EXPECT_EQ(ending.code, StatusCode::INVALID_ARGUMENT) << max_in_flight;
    EXPECT_EQ(ending.field, "config.max_in_flight");
  }
  Stream late(server_.get());
  late.Send(Grey("a", 1));
  EXPECT_TRUE(late.Next().has_classify());
  late.Send(Config(4));
  const server::Ending ending = late.ExpectEnd();
  EXPECT_EQ(ending.code, StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(ending.field, "config");
  EXPECT_EQ(server_->WaitForSum("sfmamba_requests_total",
                                {R"(code="INVALID_ARGUMENT")"}, 4),
            4);
}

TEST_F(StreamCallTest, HasAtMostSoManyInFlight) {
  Start("max_queue_delay {} max_batch_size: 1");
  server_->gate().Close();
  Stream stream(server_.get());
  stream.Send(Config(3));
  for (int i = 0; i < 10; ++i) stream.Send(Grey(absl::StrCat(i), i));
  stream.SendNoMore();
  EXPECT_EQ(InFlight(3), 3);
  server_->AwaitRoundTrip();  // Time for more, were there any.
  EXPECT_EQ(InFlight(3), 3);
  server_->gate().Open();
  std::set<std::string> answered;
  for (int i = 0; i < 10; ++i) answered.insert(stream.Next().correlation_id());
  EXPECT_EQ(answered.size(), 10);
  EXPECT_EQ(stream.ExpectEnd().code, StatusCode::OK);
}

TEST_F(StreamCallTest, CancellingItCancelsItsRequests) {
  Start();
  server_->gate().Close();
  {
    Stream stream(server_.get());
    for (int i = 0; i < 5; ++i) stream.Send(Grey(absl::StrCat(i), i));
    EXPECT_EQ(InFlight(5), 5);
    stream.Cancel();
  }
  server_->AwaitRoundTrip();
  server_->gate().Open();
  EXPECT_EQ(InFlight(0), 0);
  EXPECT_EQ(
      server_->WaitForSum("sfmamba_requests_total", {R"(code="CANCELLED")"}, 5),
      5);
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
  // Either end may find out first.
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
  Stream stream(server_.get());
  stream.Send(Grey("a", 1));
  EXPECT_TRUE(stream.Next().has_classify());
  EXPECT_EQ(InFlight(0), 0);
  server_->AdvanceClock(StreamCall::kMostIdle);
  EXPECT_EQ(stream.ExpectEnd().code, StatusCode::OK);
}

TEST_F(StreamCallTest, SaysThatTheServerDrains) {
  v1::ServerConfig config;
  config.mutable_drain_timeout()->set_seconds(60);
  Start("", config);
  server_->gate().Close();
  Stream stream(server_.get());
  stream.Send(Grey("before", 1));
  EXPECT_EQ(InFlight(1), 1);
  bool clean = false;
  std::thread stopper([&] { clean = server_->server().Shutdown(); });
  const StreamPredictResponse notice = stream.Next();
  EXPECT_EQ(notice.notice().kind(), v1::Notice::DRAINING);
  stream.Send(Grey("after", 1));
  const StreamPredictResponse refused = stream.Next();
  EXPECT_EQ(refused.correlation_id(), "after");
  EXPECT_EQ(EndingOf(refused.error()).reason, "DRAINING");
  server_->gate().Open();
  EXPECT_TRUE(stream.Next().has_classify());
  // A client that does not end its part cannot hold up the server.
  const server::Ending ending = stream.ExpectEnd();
  EXPECT_EQ(ending.code, StatusCode::UNAVAILABLE);
  EXPECT_EQ(ending.reason, "DRAINING");
  Join(stopper, "the end of Shutdown()");
  EXPECT_TRUE(clean);
}

TEST_F(StreamCallTest, AMalformedMessageEndsIt) {
  Start();
  const std::string grey = Grey("a", 1).SerializeAsString();
  for (const std::string& bytes :
       {std::string("\xff\xff"), grey.substr(0, grey.size() - 1),
        std::string("\x0a\x01\xff"), grey + grey,
        absl::StrCat("\x0a\x80\x10", std::string(2048, 'x'))}) {
    grpc::GenericStub stub(server_->channel());
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    const auto next = [&queue] {
      void* tag = nullptr;
      bool ok = false;
      queue.Next(&tag, &ok);
    };
    const auto call = stub.PrepareCall(
        &context, "/sfmamba.v1.VisionService/StreamPredict", &queue);
    call->StartCall(nullptr);
    next();
    const grpc::Slice slice(bytes);
    call->Write(grpc::ByteBuffer(&slice, 1), nullptr);
    next();
    grpc::Status status;
    call->Finish(&status, nullptr);
    next();
    queue.Shutdown();
    next();
    const server::Ending ending = server::EndingOf(status, &context);
    EXPECT_EQ(ending.code, StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(ending.reason, "MALFORMED_MESSAGE");
  }
}

TEST_F(StreamCallTest, AnswersThatAreNotReadEndIt) {
  Start("max_queue_delay {}", v1::ServerConfig(), true,
        model::VisionTask::kSegmentation);
  Stream stream(server_.get());
  StreamPredictRequest segment;
  // Its answer is a map of a byte a pixel, more than the client's window takes.
  segment.mutable_segment()->add_images()->set_encoded(
      server::EncodePng(server::WithRed(1000, 600, {10, 10, 20, 20})));
  segment.mutable_segment()->mutable_params()->set_encoding(
      v1::SegmentParams::RAW_INDEX);
  for (int i = 0; i < 40; ++i) {
    segment.set_correlation_id(absl::StrCat(i));
    ASSERT_TRUE(stream.Send(segment));
  }
  // All that may be in flight are done: one that does not fit is on its way.
  while (server_->Sum("sfmamba_requests_total", {R"(code="OK")"}) <
             StreamCall::kDefaultInFlight ||
         server_->Sum(kInFlight, {}) < StreamCall::kDefaultInFlight) {
    std::this_thread::yield();
  }
  server_->AdvanceClock(absl::Seconds(21));
  EXPECT_EQ(InFlight(0), 0);
  EXPECT_EQ(server_->WaitForSum("sfmamba_memory_held_bytes", {}, 0), 0);
}

// Ten thousand requests, of a client that reads nothing until its window is
// full and the server takes no more, and seldom afterwards.
TEST_F(StreamCallTest, ASlowReaderHoldsBackItsOwnRequests) {
  constexpr int kRequests = 10'000;
  constexpr int kMost = 32;
  Start();
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);  // The window stays small.
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
  // What is done and not sent stays in flight.
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
      most = std::max(most, server_->Sum(kInFlight, {}));
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
