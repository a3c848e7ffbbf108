#include "server/rpc/stream/predict_stream.h"

#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/steady_clock.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "tests/server/rpc/stream/stream_fixture.h"
#include "tests/testing/patience.h"

namespace sfmamba::rpc {
namespace {

using grpc::StatusCode;

using PredictStreamTest = StreamTest;

TEST_F(PredictStreamTest, AnswersAsTheUnaryMethodsDo) {
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

TEST_F(PredictStreamTest, DetectsAndSegmentsToo) {
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

TEST_F(PredictStreamTest, AnErrorIsOfOneRequestAlone) {
  Start();
  server_->gate().Close();
  Stream stream(server_.get());
  stream.Send(Config(8, /*preserve_order=*/true));
  stream.Send(Grey("a", 1));
  // A request with this ID is already in flight.
  stream.Send(Grey("a", 2));
  // The ID is empty.
  stream.Send(Grey("", 3));
  // The ID is longer than 128 characters.
  stream.Send(Grey(std::string(129, 'x'), 3));
  // The longest ID with which a stream continues. A longer one would end the
  // stream.
  stream.Send(Grey(std::string(1024, 'x'), 3));
  stream.Send(StreamPredictRequest());  // The message is empty.
  StreamPredictRequest nothing;
  nothing.set_correlation_id("nothing");
  stream.Send(nothing);
  StreamPredictRequest empty;
  empty.set_correlation_id("empty");
  empty.mutable_classify();
  stream.Send(empty);
  stream.Send(Grey(std::string(128, 'x'), 4));
  EXPECT_EQ(server_->WaitForSum("sfmamba_requests_total",
                                {R"(code="INVALID_ARGUMENT")"}, 7),
            7);
  // All but one of these requests were refused before a model was chosen.
  EXPECT_EQ(server_->Sum("sfmamba_requests_total",
                         {R"(code="INVALID_ARGUMENT")", R"(model="")"}),
            6);
  server_->gate().Open();
  EXPECT_TRUE(stream.Next().has_classify());
  for (const char* field :
       {"correlation_id", "correlation_id", "correlation_id", "correlation_id",
        "correlation_id", "request", "images"}) {
    const server::Ending refused = EndingOf(stream.Next().error());
    EXPECT_EQ(refused.code, StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(refused.reason, "INVALID_FIELD");
    EXPECT_EQ(refused.field, field);
  }
  EXPECT_TRUE(stream.Next().has_classify());
  // The first request has ended, so its ID may be used again.
  stream.Send(Grey("a", 2));
  EXPECT_TRUE(stream.Next().has_classify());
  stream.SendNoMore();
  EXPECT_EQ(stream.ExpectEnd().code, StatusCode::OK);
}

TEST_F(PredictStreamTest, TheBoundsOfAConfigurationAreTaken) {
  Start();
  for (const int max_in_flight : {1, 512}) {
    Stream stream(server_.get());
    stream.Send(Config(max_in_flight));
    stream.Send(Grey("a", 1));
    EXPECT_TRUE(stream.Next().has_classify());
    stream.SendNoMore();
    EXPECT_EQ(stream.ExpectEnd().code, StatusCode::OK) << max_in_flight;
  }
}

TEST_F(PredictStreamTest, AWrongConfigurationEndsIt) {
  Start();
  for (const int max_in_flight : {0, -1, 513}) {
    Stream stream(server_.get());
    stream.Send(Config(max_in_flight));
    const server::Ending ending = stream.ExpectEnd();
    EXPECT_EQ(ending.code, StatusCode::INVALID_ARGUMENT) << max_in_flight;
    EXPECT_EQ(ending.field, "config.max_in_flight");
  }
  EXPECT_NE(server_->Log().find(R"("client":"ipv4:127.0.0.1")"),
            std::string::npos);
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

TEST_F(PredictStreamTest, SaysThatTheServerDrains) {
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
  // The server ends the stream although the client could still send.
  const server::Ending ending = stream.ExpectEnd();
  EXPECT_EQ(ending.code, StatusCode::UNAVAILABLE);
  EXPECT_EQ(ending.reason, "DRAINING");
  Join(stopper, "the end of Shutdown()");
  EXPECT_TRUE(clean);
}

TEST_F(PredictStreamTest, AnIdleStreamHasTimeToReadThatTheServerDrains) {
  v1::ServerConfig config;
  config.mutable_drain_timeout()->set_seconds(60);
  Start("", config);
  Stream stream(server_.get());
  stream.Send(Grey("before", 1));
  EXPECT_TRUE(stream.Next().has_classify());
  EXPECT_EQ(InFlight(0), 0);
  // The server ends an idle stream this long after the notice DRAINING. The
  // time is stated in docs/serving.md.
  constexpr absl::Duration kTime = absl::Seconds(1);
  server_->AdvanceClock(2 * kTime);
  const absl::Time begin = base::SteadyNow();
  std::thread stopper([&] { server_->server().Shutdown(); });
  EXPECT_EQ(stream.Next().notice().kind(), v1::Notice::DRAINING);
  EXPECT_EQ(stream.ExpectEnd().reason, "DRAINING");
  EXPECT_GE(base::SteadyNow() - begin, kTime);
  Join(stopper, "the end of Shutdown()");
}

TEST(OpenStreamMessageTest, OfAFieldThatComesTwiceTheLastCounts) {
  const std::string empty("\x0a\0", 2);
  const std::pair<std::string, std::string> kCases[] = {
      {"\x0a\x02xy\x0a\x01z", "z"}, {"\x0a\x01x" + empty, ""}, {empty, ""}};
  for (const auto& [bytes, id] : kCases) {
    const grpc::Slice slice(bytes);
    grpc::ByteBuffer received(&slice, 1);
    StreamMessage message;
    EXPECT_TRUE(OpenStreamMessage(&received, &message).ok());
    EXPECT_EQ(message.correlation_id, id);
  }
}

TEST_F(PredictStreamTest, AMalformedMessageEndsIt) {
  Start();
  const std::string grey = Grey("a", 1).SerializeAsString();
  for (const std::string& bytes :
       {std::string("\xff\xff"), grey.substr(0, grey.size() - 1),
        std::string("\x0a\x01\xff"), grey + grey,
        Grey(std::string(1025, 'x'), 1).SerializeAsString()}) {
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

}  // namespace
}  // namespace sfmamba::rpc
