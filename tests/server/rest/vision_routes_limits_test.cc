// Tests REST requests while the server drains or is full, with deadlines and
// with memory limits.

#include <malloc.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/server/rest/vision_routes_fixture.h"

namespace sfmamba::rest {
namespace {

TEST_F(VisionRoutesTest, ADrainingServerSendsClientsElsewhere) {
  service_.StartDraining();
  ExpectRefused(PictureRequest(), 503, "\"reason\":\"DRAINING\"");
  EXPECT_NE(retry_after_, "");
  ExpectRefused(RequestOf("GET", "/v1/models"), 503, "DRAINING");
  ExpectRefused(RequestOf("GET", "/v1/models/fake"), 503, "DRAINING");
}

TEST_F(VisionRoutesTest, CallsAreLoggedWithTheirClient) {
  http::HttpRequest read = RequestOf("GET", "/v1/models/fake");
  read.caller.name = "reader";
  Ask(std::move(read));
  EXPECT_TRUE(absl::StrContains(Log(), "\"client\":\"reader\""));

  http::HttpRequest request = PictureRequest();
  request.caller.name = "camera";
  request.headers.emplace("x-request-timeout", "soon");
  Ask(std::move(request), 400);
  const std::string log = Log();
  EXPECT_TRUE(absl::StrContains(log, "\"client\":\"camera\"")) << log;
  EXPECT_TRUE(absl::StrContains(log, "\"peer\":\"ipv4:127.0.0.1:1\"")) << log;
}

TEST_F(VisionRoutesTest, AFullQueueSaysWhenToComeBack) {
  MayDecode(0);
  v1::ClassifyRequest message;
  for (int i = 0; i < 30; ++i) {
    message.add_images()->set_encoded(PictureRequest().body);
  }
  std::vector<std::unique_ptr<http::FakeClient>> clients;
  for (int i = 0; i < 2; ++i) {
    clients.push_back(std::make_unique<http::FakeClient>());
    service_.Handle(clients.back()->Ask(
        RequestOf("POST", "/v1/models/fake:classify", "application/x-protobuf",
                  message.SerializeAsString())));
  }
  const http::HttpResponse& refused = clients.back()->Answer();
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(clients.back()->Header("Retry-After"), "1");
  clients.back()->TakeAnswer();
  decoding_.Allow(prediction::Steps::kAll);
  clients.front()->Answer();
  clients.front()->TakeAnswer();
}

TEST_F(VisionRoutesTest, ADeadlineEndsARequest) {
  gate_.Close();
  http::FakeClient client;
  http::HttpRequest request = PictureRequest();
  request.headers.emplace("grpc-timeout", "90S");
  service_.Handle(client.Ask(std::move(request)));
  gate_.WaitForBatch();
  AdvanceClock(absl::Seconds(100));
  gate_.Open();
  EXPECT_EQ(client.Answer().status, 504);
  EXPECT_TRUE(absl::StrContains(client.Body(), "EXPIRED_IN_QUEUE"));
  client.TakeAnswer();
}

TEST_F(VisionRoutesTest, AClientThatGoesIsNotWorkedFor) {
  MayDecode(0);
  http::FakeClient client;
  service_.Handle(client.Ask(PictureRequest()));
  client.Cancel();
  decoding_.Allow(prediction::Steps::kAll);
  EXPECT_EQ(client.Answer().status, 499);
}

TEST_F(VisionRoutesTest, AClientThatHasGoneAlreadyIsNotWorkedFor) {
  http::FakeClient client;
  client.Cancel();
  service_.Handle(client.Ask(PictureRequest()));
  EXPECT_EQ(client.Answer().status, 499);
}

TEST_F(VisionRoutesTest, AnAnswerIsHeldUntilItIsSent) {
  http::FakeClient client;
  service_.Handle(client.Ask(PictureRequest()));
  const std::string body = client.Body();
  EXPECT_EQ(memory_.held(server::MemoryUse::kMessage), 0);
  EXPECT_GE(memory_.held(server::MemoryUse::kAnswer), body.size() / 2);
  client.TakeAnswer();
  EXPECT_EQ(memory_.held(server::MemoryUse::kAnswer), 0);
}

TEST_F(VisionRoutesTest, JsonBodiesHoldMemoryUntilTheirPicturesAreRead) {
  const std::string picture = PictureRequest().body;
  const std::string json = absl::StrCat("{\"images\":[{\"encoded\":\"",
                                        absl::Base64Escape(picture), "\"}]}");
  MayDecode(0);
  http::FakeClient client;
  service_.Handle(client.Ask(
      RequestOf("POST", "/v1/models/fake:classify", "application/json", json)));
  EXPECT_EQ(memory_.held(server::MemoryUse::kMessage), json.size());
  decoding_.Allow(prediction::Steps::kAll);
  client.Answer();
  EXPECT_EQ(memory_.held(server::MemoryUse::kMessage), 0);
  client.TakeAnswer();
}

// Returns the bytes of this process's heap that are in use.
int64_t HeapInUse() {
  const struct mallinfo2 heap = mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

TEST_F(VisionRoutesTest, WhatPicturesCameInIsFreedBeforeTheModelRuns) {
  constexpr int64_t kBytes = 16 << 20;
  http::HttpRequest request = PictureRequest();
  // The picture is followed by zeros.
  request.body.resize(kBytes);
  gate_.Close();
  http::FakeClient client;
  const int64_t before = HeapInUse();
  service_.Handle(client.Ask(std::move(request)));
  gate_.WaitForBatch();
  WaitUntil([=] { return HeapInUse() < before - kBytes / 2; }, "the memory");
  gate_.Open();
  EXPECT_EQ(client.Answer().status, 200);
  client.TakeAnswer();
}

TEST_F(VisionRoutesTest, JsonThatFindsNoMemoryIsRefusedUnread) {
  std::vector<server::MemoryHold> held;
  while (true) {
    auto hold = memory_.Take(server::MemoryUse::kMessage, 8 << 20);
    if (!hold.ok()) break;
    held.push_back(*std::move(hold));
  }
  const std::string json(9 << 20, ' ');
  ExpectRefused(RequestOf("POST", "/v1/models/fake:classify",
                          "application/json", "{" + json + "!"),
                429, "\"reason\":\"QUEUE_FULL\"");
}

TEST_F(VisionRoutesTest, TheTextThatIsSentIsWhatIsLimited) {
  http::HttpRequest request = PictureRequest();
  request.query = {{"top_k", "10"}};
  const size_t json = Ask(request).size();
  request.headers.emplace("accept", "application/x-protobuf");
  const size_t protobuf = Ask(request).size();
  ASSERT_LT(protobuf, json - 100);
  environment_->max_response_bytes = json - 100;
  const call::MethodTable methods(
      prediction::TransportEnvironment{*environment_}, api::VisionMethods());
  RestService service(methods, {});
  const auto ask = [&] {
    http::FakeClient client;
    service.Handle(client.Ask(request));
    const std::string body = client.Body();
    client.TakeAnswer();
    return body;
  };
  EXPECT_EQ(ask().size(), protobuf);
  request.headers.clear();
  EXPECT_TRUE(absl::StrContains(ask(), "\"reason\":\"RESPONSE_TOO_LARGE\""));
}

}  // namespace
}  // namespace sfmamba::rest
