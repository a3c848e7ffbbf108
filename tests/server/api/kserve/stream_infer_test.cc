// Tests ModelStreamInfer on a server with fake models.

#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "tests/server/api/kserve/kserve_fixture.h"
#include "tests/testing/patience.h"

namespace sfmamba::kserve {
namespace {

using grpc::StatusCode;
using inference::ModelStreamInferResponse;

// The limit of requests in flight, as docs/clients.md says.
constexpr int kMost = 64;
constexpr char kInFlight[] = "sfmamba_in_flight_requests";
constexpr char kRequests[] = "sfmamba_requests_total";

ModelInferRequest Named(const std::string& id, float value = 0.25f) {
  ModelInferRequest request = Fp32Request(value);
  request.set_id(id);
  return request;
}

// Returns a request that the server refuses at once, because the model is
// unknown.
ModelInferRequest Unknown(const std::string& id) {
  ModelInferRequest request = Named(id);
  request.set_model_name("unknown");
  return request;
}

// The client's side of a stream. If the test does not finish the stream, the
// destructor cancels it.
class Stream {
 public:
  explicit Stream(inference::GRPCInferenceService::Stub& stub,
                  const std::string& errors = "") {
    if (!errors.empty()) context_.AddMetadata("triton_grpc_error", errors);
    stream_ = stub.ModelStreamInfer(&context_);
  }
  ~Stream() {
    if (stream_ == nullptr) return;
    context_.TryCancel();
    (void)stream_->Finish();
  }

  bool Send(const ModelInferRequest& request) {
    return stream_->Write(request);
  }
  void SendNoMore() { stream_->WritesDone(); }
  void Cancel() { context_.TryCancel(); }
  // Returns the next message. The test fails if the stream has ended.
  ModelStreamInferResponse Next() {
    ModelStreamInferResponse message;
    EXPECT_TRUE(stream_->Read(&message)) << "the stream has ended";
    return message;
  }
  // Expects that the stream ends without another message. Returns how it ended.
  server::Ending ExpectEnd() {
    ModelStreamInferResponse message;
    EXPECT_FALSE(stream_->Read(&message)) << message.ShortDebugString();
    const grpc::Status status = stream_->Finish();
    stream_ = nullptr;
    return server::EndingOf(status, &context_);
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<
      grpc::ClientReaderWriter<ModelInferRequest, ModelStreamInferResponse>>
      stream_;
};

class StreamInferTest : public KserveTest {
 protected:
  double InFlight(double value) {
    return server_->WaitForSum(kInFlight, {}, value);
  }
  double Ended(const std::string& code, double value) {
    return server_->WaitForSum(kRequests,
                               {R"(method="ModelStreamInfer")", code}, value);
  }
};

TEST_F(StreamInferTest, AnswersAsModelInferDoes) {
  Start();
  Stream stream(*stub_);
  for (int i = 0; i < 3; ++i) {
    stream.Send(Named(absl::StrCat("id", i), 0.25f * i));
  }
  stream.SendNoMore();
  std::set<std::string> answered;
  for (int i = 0; i < 3; ++i) {
    const ModelStreamInferResponse answer = stream.Next();
    EXPECT_EQ(answer.error_message(), "");
    const std::string& id = answer.infer_response().id();
    answered.insert(id);
    const ModelInferResponse unary =
        Answer(Named(id, 0.25f * (id.back() - '0')));
    EXPECT_EQ(answer.infer_response().SerializeAsString(),
              unary.SerializeAsString());
  }
  EXPECT_EQ(answered, (std::set<std::string>{"id0", "id1", "id2"}));
  EXPECT_EQ(stream.ExpectEnd().code, StatusCode::OK);
  EXPECT_EQ(Ended(R"(code="OK")", 3), 3);
  EXPECT_EQ(InFlight(0), 0);
}

TEST_F(StreamInferTest, WhatHasNoIdKeepsItsOrder) {
  Start();
  server_->gate().Close();
  Stream stream(*stub_);
  stream.Send(Named(""));
  stream.Send(Unknown(""));
  stream.Send(Unknown("named"));
  EXPECT_EQ(stream.Next().infer_response().id(), "named");
  server_->gate().Open();
  EXPECT_EQ(stream.Next().error_message(), "");
  EXPECT_NE(stream.Next().error_message(), "");
  stream.SendNoMore();
  EXPECT_EQ(stream.ExpectEnd().code, StatusCode::OK);
}

TEST_F(StreamInferTest, AnErrorIsOfOneRequestAlone) {
  Start();
  Stream stream(*stub_);
  ModelInferRequest other = RequestFor("FP32", {1, 3, 5, 5});
  other.add_raw_input_contents(Raw(std::vector<float>(75)));
  other.set_id("other");
  stream.Send(other);
  const ModelStreamInferResponse refused = stream.Next();
  EXPECT_TRUE(absl::StartsWith(refused.error_message(),
                               "[request id: other] INVALID_ARGUMENT: "
                               "inputs[0][0].tensor.shape: "))
      << refused.error_message();
  EXPECT_EQ(refused.infer_response().id(), "other");
  EXPECT_EQ(refused.infer_response().outputs_size(), 0);
  stream.Send(Unknown(""));
  EXPECT_TRUE(absl::StartsWith(stream.Next().error_message(), "NOT_FOUND: "));
  stream.Send(Named("good"));
  EXPECT_EQ(stream.Next().infer_response().id(), "good");
  stream.SendNoMore();
  EXPECT_EQ(stream.ExpectEnd().code, StatusCode::OK);
  EXPECT_EQ(Ended(R"(code="INVALID_ARGUMENT")", 1), 1);
}

TEST_F(StreamInferTest, AnErrorShowsTheBeginOfALongId) {
  Start();
  Stream stream(*stub_);
  const std::string shown(128, 'x');
  stream.Send(Named(shown + "y"));
  EXPECT_TRUE(absl::StartsWith(stream.Next().error_message(),
                               "[request id: " + shown + "] INVALID_ARGUMENT"));
}

// A message with text that is not UTF-8 would end the stream at the client.
TEST_F(StreamInferTest, LongNamesAreShownInWholeCharacters) {
  Start();
  Stream stream(*stub_);
  std::string name;
  for (int i = 0; i < 200; ++i) name += "\xc3\xa9";
  for (const char* shift : {"", "x"}) {
    stream.Send(Named(shift + name));
    EXPECT_TRUE(absl::StrContains(stream.Next().error_message(),
                                  "INVALID_ARGUMENT: id: "));
    ModelInferRequest request = Named("id");
    request.set_model_name(absl::StrCat("a/", shift, name));
    stream.Send(request);
    EXPECT_TRUE(absl::StrContains(stream.Next().error_message(), "NOT_FOUND"));
    request = Named("id");
    request.mutable_inputs(0)->set_name(shift + name);
    stream.Send(request);
    EXPECT_NE(stream.Next().error_message(), "");
    request = Named("id");
    request.mutable_inputs(0)->set_datatype(shift + name);
    stream.Send(request);
    EXPECT_NE(stream.Next().error_message(), "");
    request = Named("id");
    request.add_outputs()->set_name(shift + name);
    stream.Send(request);
    EXPECT_NE(stream.Next().error_message(), "");
    request = Named("id");
    (*request.mutable_parameters())[absl::StrCat("triton_", shift, name)];
    stream.Send(request);
    EXPECT_NE(stream.Next().error_message(), "");
  }
  stream.SendNoMore();
  EXPECT_EQ(stream.ExpectEnd().code, StatusCode::OK);
}

TEST_F(StreamInferTest, TheFirstErrorEndsItIfAsked) {
  Start();
  for (const char* yes : {"true", "1"}) {
    server_->gate().Close();
    Stream stream(*stub_, yes);
    stream.Send(Named("cancelled"));
    EXPECT_EQ(InFlight(1), 1);
    const double before = server_->Sum(kRequests, {R"(code="NOT_FOUND")"});
    stream.Send(Unknown("refused"));
    EXPECT_EQ(Ended(R"(code="NOT_FOUND")", before + 1), before + 1);
    server_->gate().Open();
    const server::Ending ending = stream.ExpectEnd();
    EXPECT_EQ(ending.code, StatusCode::NOT_FOUND);
    EXPECT_EQ(ending.reason, "MODEL_NOT_FOUND");
    EXPECT_EQ(InFlight(0), 0);
  }
  EXPECT_EQ(Ended(R"(code="CANCELLED")", 2), 2);
  EXPECT_EQ(server_->WaitForSum("sfmamba_memory_held_bytes", {}, 0), 0);
  Stream stream(*stub_, "false");
  stream.Send(Unknown("refused"));
  EXPECT_NE(stream.Next().error_message(), "");
}

TEST_F(StreamInferTest, MarksTheLastAnswerIfAsked) {
  Start();
  Stream stream(*stub_);
  for (const bool asked : {true, false}) {
    for (ModelInferRequest request : {Named("a"), Unknown("b")}) {
      (*request.mutable_parameters())["triton_enable_empty_final_response"]
          .set_bool_param(asked);
      stream.Send(request);
      const ModelStreamInferResponse answer = stream.Next();
      const auto& parameters = answer.infer_response().parameters();
      ASSERT_EQ(parameters.size(), asked ? 1 : 0);
      if (!asked) continue;
      EXPECT_TRUE(parameters.at("triton_final_response").bool_param());
    }
  }
}

TEST_F(StreamInferTest, HasAtMostSoManyInFlight) {
  Start();
  server_->gate().Close();
  Stream stream(*stub_);
  for (int i = 0; i < 2 * kMost; ++i) stream.Send(Named(absl::StrCat(i)));
  stream.SendNoMore();
  EXPECT_EQ(InFlight(kMost), kMost);
  // The server would have begun more requests by now if it had no limit.
  server_->AwaitRoundTrip();
  EXPECT_EQ(InFlight(kMost), kMost);
  server_->gate().Open();
  std::set<std::string> answered;
  for (int i = 0; i < 2 * kMost; ++i) {
    answered.insert(stream.Next().infer_response().id());
  }
  EXPECT_EQ(answered.size(), 2 * kMost);
  EXPECT_EQ(stream.ExpectEnd().code, StatusCode::OK);
}

TEST_F(StreamInferTest, CancellingItCancelsItsRequests) {
  Start();
  server_->gate().Close();
  {
    Stream stream(*stub_);
    stream.Send(Named("0"));
    server_->gate().WaitForBatch();
    for (int i = 1; i < 5; ++i) stream.Send(Named(absl::StrCat(i)));
    EXPECT_EQ(InFlight(5), 5);
    stream.Cancel();
  }
  EXPECT_EQ(Ended(R"(code="CANCELLED")", 4), 4) << "those that wait";
  server_->gate().Open();
  EXPECT_EQ(InFlight(0), 0);
  EXPECT_EQ(Ended(R"(code="CANCELLED")", 5), 5);
  ExpectAlive();
}

TEST_F(StreamInferTest, ADrainingServerEndsIt) {
  v1::ServerConfig config;
  config.mutable_drain_timeout()->set_seconds(60);
  Start("", config);
  server_->gate().Close();
  Stream stream(*stub_);
  stream.Send(Named("before"));
  EXPECT_EQ(InFlight(1), 1);
  bool clean = false;
  std::thread stopper([&] { clean = server_->server().Shutdown(); });
  const auto drains = [this] {
    grpc::ClientContext context;
    inference::ModelMetadataRequest asked;
    asked.set_name("fake");
    inference::ModelMetadataResponse metadata;
    return !stub_->ModelMetadata(&context, asked, &metadata).ok();
  };
  WaitUntil(drains, "the refusal of new requests");
  stream.Send(Named("after"));
  const ModelStreamInferResponse refused = stream.Next();
  EXPECT_EQ(refused.infer_response().id(), "after");
  EXPECT_TRUE(absl::StrContains(refused.error_message(), "UNAVAILABLE"));
  server_->gate().Open();
  const ModelStreamInferResponse answer = stream.Next();
  EXPECT_EQ(answer.infer_response().id(), "before");
  EXPECT_EQ(answer.error_message(), "");
  // The server ends the stream although the client could still send.
  const server::Ending ending = stream.ExpectEnd();
  EXPECT_EQ(ending.code, StatusCode::UNAVAILABLE);
  EXPECT_EQ(ending.reason, "DRAINING");
  Join(stopper, "the end of Shutdown()");
  EXPECT_TRUE(clean);
}

// Sends ten thousand requests and never reads an answer.
TEST_F(StreamInferTest, AnswersThatAreNotReadEndIt) {
  constexpr int kAll = 10'000;
  Start();
  grpc::ChannelArguments arguments;
  // Without this probe, gRPC's flow-control window stays small.
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto stub =
      inference::GRPCInferenceService::NewStub(grpc::CreateCustomChannel(
          absl::StrCat("127.0.0.1:", server_->server().port()),
          grpc::InsecureChannelCredentials(), arguments));
  Stream stream(*stub);
  int sent = 0;
  std::thread sender([&] {
    while (sent < kAll && stream.Send(Named(absl::StrCat(sent)))) ++sent;
  });
  const auto ended = [this] {
    return server_->Sum(kRequests,
                        {R"(method="ModelStreamInfer")", R"(code="OK")"});
  };
  // A request stays in flight after it was computed, until its answer is sent.
  for (double before = -1, now = 0; now != before || now < kMost;) {
    before = std::exchange(now, ended());
    server_->AwaitRoundTrip();
    EXPECT_EQ(InFlight(kMost), kMost);
  }
  EXPECT_LT(ended(), kAll / 2);
  server_->AdvanceClock(absl::Seconds(21));
  EXPECT_EQ(InFlight(0), 0);
  EXPECT_EQ(server_->WaitForSum("sfmamba_memory_held_bytes", {}, 0), 0);
  Join(sender, "the end of the requests");
  EXPECT_LT(sent, kAll);
  ExpectAlive();
}

// Opens hundreds of streams, uses half of them and leaves all of them.
TEST_F(StreamInferTest, ManyStreamsAreServedAtOnce) {
  constexpr int kStreams = 200;
  Start();
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < kStreams; ++i) {
    streams.push_back(std::make_unique<Stream>(*stub_));
    if (i % 2 == 0) streams.back()->Send(Named(absl::StrCat(i)));
  }
  for (int i = 0; i < kStreams; i += 2) {
    EXPECT_EQ(streams[i]->Next().infer_response().id(), absl::StrCat(i));
  }
  streams.clear();
  EXPECT_EQ(Ended(R"(code="OK")", kStreams / 2), kStreams / 2);
  EXPECT_EQ(InFlight(0), 0);
  ExpectAlive();
}

}  // namespace
}  // namespace sfmamba::kserve
