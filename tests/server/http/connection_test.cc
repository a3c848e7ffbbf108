// Tests requests that are answered later, and clients that disconnect before
// the answer.

#include "server/http/connection.h"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "server/http/http_server.h"
#include "tests/server/http/connection_fixture.h"
#include "tests/server/http/raw_client.h"
#include "tests/testing/patience.h"

namespace sfmamba::http {
namespace {

TEST_F(ConnectionTest, AnAnswerMayComeLaterFromAnotherThread) {
  Start();
  RawClient client(server_->port());
  client.Send(kGet);
  auto exchange = Next();
  EXPECT_EQ(Other(), "other");
  EXPECT_TRUE(absl::StartsWith(exchange->request().peer, "ipv4:127.0.0.1:"));
  absl::Notification sent;
  std::thread thread([&] {
    exchange->Answer(Text("late"), [&sent] { sent.Notify(); });
    exchange = nullptr;
  });
  EXPECT_TRUE(absl::EndsWith(client.ReadAnswer(), "\r\n\r\nlate"));
  WaitFor(sent, "the answer to be sent");
  Join(thread, "the handler");
}

TEST_F(ConnectionTest, AnExchangeThatEndsUnansweredIsA500) {
  Start();
  RawClient client(server_->port());
  client.Send(kGet);
  Next() = nullptr;
  EXPECT_TRUE(absl::StartsWith(client.ReadAnswer(), "HTTP/1.1 500"));
  client.Send(kGet);
  Next()->Answer(Text("next"), [] {});
  EXPECT_TRUE(absl::EndsWith(client.ReadAnswer(), "next"));
}

TEST_F(ConnectionTest, EachAnswerGetsTheHeadersOfTheOptions) {
  options_.headers = [](const HttpRequest& request) {
    return Headers{{"X-Asked", request.method}};
  };
  options_.admit = [](HttpRequest& request) -> std::optional<HttpResponse> {
    if (request.method == "GET") return std::nullopt;
    return Text("refused");
  };
  Start();
  const std::string get = "\r\nX-Asked: GET\r\n";
  RawClient client(server_->port());
  client.Send(kGet);
  Next()->Answer(Text("first"));
  EXPECT_TRUE(absl::StrContains(client.ReadAnswer(), get));
  client.Send(kGet);
  Next() = nullptr;
  EXPECT_TRUE(absl::StrContains(client.ReadAnswer(), get));
  client.Send("PUT /a HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(absl::StrContains(client.ReadAnswer(), "\r\nX-Asked: PUT\r\n"));
  RawClient other(server_->port());
  other.Send("GET /a HTTP/1.1\r\nExpect: miracles\r\n\r\n");
  EXPECT_TRUE(absl::StrContains(other.ReadAnswer(), get));
}

// Refuses requests that have no header "pass".
std::optional<HttpResponse> AskForPass(HttpRequest& request) {
  if (request.headers.count("pass") > 0) return std::nullopt;
  HttpResponse response = Text("no pass");
  response.status = 401;
  return response;
}

TEST_F(ConnectionTest, ARequestIsRefusedBeforeItsBodyIsSent) {
  options_.admit = AskForPass;
  Start();
  RawClient client(server_->port());
  client.Send("POST /a HTTP/1.1\r\nContent-Length: 60000000\r\n\r\n");
  const std::string answer = client.ReadAll();
  EXPECT_TRUE(absl::StartsWith(answer, "HTTP/1.1 401")) << answer;
  EXPECT_TRUE(absl::StrContains(answer, "Connection: close")) << answer;
  EXPECT_TRUE(absl::EndsWith(answer, "\r\n\r\nno pass")) << answer;
  EXPECT_EQ(server_->held_bytes(), 0);
  RawClient waiting(server_->port());
  waiting.Send(
      "POST /a HTTP/1.1\r\nContent-Length: 9\r\n"
      "Expect: 100-continue\r\n\r\n");
  EXPECT_TRUE(absl::StartsWith(waiting.ReadAll(), "HTTP/1.1 401"));
  EXPECT_FALSE(IsAsked());
}

TEST_F(ConnectionTest, EachRequestIsAdmittedOnceWithItsPeer) {
  std::atomic<int> admitted{0};
  options_.admit = [&](HttpRequest& request) {
    ++admitted;
    EXPECT_TRUE(absl::StartsWith(request.peer, "ipv4:127.0.0.1:"));
    request.headers.emplace("seen", "yes");
    return AskForPass(request);
  };
  Start();
  RawClient client(server_->port());
  client.Send("GET /a HTTP/1.1\r\npass: 1\r\n\r\n");
  auto exchange = Next();
  EXPECT_EQ(exchange->request().headers.count("seen"), 1u);
  exchange->Answer(Text("1"), [] {});
  client.ReadAnswer();
  client.Send("POST /a HTTP/1.1\r\npass: 1\r\nContent-Length: 4\r\n\r\nab");
  client.Send("cd");
  exchange = Next();
  EXPECT_EQ(exchange->request().body, "abcd");
  exchange->Answer(Text("2"), [] {});
  client.ReadAnswer();
  EXPECT_EQ(admitted, 2);
  client.Send("HEAD /a HTTP/1.1\r\n\r\n");
  const std::string answer = client.ReadAll();
  EXPECT_TRUE(absl::StartsWith(answer, "HTTP/1.1 401")) << answer;
  EXPECT_TRUE(absl::EndsWith(answer, "\r\n\r\n")) << answer;
}

TEST_F(ConnectionTest, TheNextRequestIsNotReadBeforeAnAnswerIsSent) {
  Start();
  RawClient client(server_->port());
  client.Send(absl::StrCat(kGet, kGet));
  auto first = Next();
  EXPECT_EQ(Other(), "other");
  EXPECT_FALSE(IsAsked());
  first->Answer(Text("1"), [] {});
  EXPECT_TRUE(absl::EndsWith(client.ReadAnswer(), "\r\n\r\n1"));
  Next()->Answer(Text("2"), [] {});
  EXPECT_TRUE(absl::EndsWith(client.ReadAnswer(), "\r\n\r\n2"));
}

TEST_F(ConnectionTest, AClientThatSendsWhileItIsToWaitIsReadNoFurther) {
  Start();
  RawClient client(server_->port());
  client.Send(kGet);
  auto exchange = Next();
  std::thread thread([&client] {
    const std::string much(8 << 20, 'x');
    while (client.Send(much)) {
    }
  });
  EXPECT_EQ(Other(), "other");
  EXPECT_EQ(server_->held_bytes(), 0);
  exchange->Answer(Text("late"), [] {});
  // These bytes are not a request, so the server ends the connection.
  Join(thread, "the connection's end");
}

TEST_F(ConnectionTest, AClientThatGoesIsTold) {
  Start();
  for (const bool resets : {true, false}) {
    auto client = std::make_unique<RawClient>(server_->port());
    client->Send(kGet);
    auto exchange = Next();
    absl::Notification cancelled, sent;
    exchange->OnCancel([&cancelled] { cancelled.Notify(); });
    if (resets) client->Reset();
    client = nullptr;
    // A normal close does not show that the client is gone. The client might
    // only send nothing more and still read the answer. The server therefore
    // cancels the request only after a reset.
    if (resets) WaitFor(cancelled, "the cancellation");
    exchange->Answer(Large(), [&sent] { sent.Notify(); });
    exchange = nullptr;
    WaitFor(sent, "an answer that nobody takes to be given up");
  }
  EXPECT_EQ(Other(), "other");
}

TEST_F(ConnectionTest, WhoAsksAfterTheClientHasGoneIsToldAtOnce) {
  Start();
  RawClient client(server_->port());
  client.Send(kGet);
  auto exchange = Next();
  absl::Notification first;
  exchange->OnCancel([&first] { first.Notify(); });
  client.Reset();
  WaitFor(first, "the cancellation");
  bool second = false;
  exchange->OnCancel([&second] { second = true; });
  EXPECT_TRUE(second);
}

TEST_F(ConnectionTest, AClientThatSendsNoMoreIsAnswered) {
  Start();
  for (const std::string& request :
       {std::string(kGet), std::string("GET /a HTTP/1.0\r\n\r\n"),
        std::string("GET /a HTTP/1.1\r\nConnection: close\r\n\r\n"),
        std::string("POST /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"),
        std::string("POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "3\r\nabc\r\n0\r\n\r\n")}) {
    RawClient client(server_->port());
    client.Send(request);
    client.CloseSending();
    auto exchange = Next();
    std::atomic<bool> cancelled{false};
    exchange->OnCancel([&cancelled] { cancelled = true; });
    EXPECT_EQ(Other(), "other") << "the end of sending has been read";
    exchange->Answer(Text("whole"), [] {});
    const std::string answer = client.ReadAll();
    EXPECT_TRUE(absl::EndsWith(answer, "\r\n\r\nwhole")) << request;
    EXPECT_TRUE(absl::StrContains(answer, "\r\nConnection: close\r\n"))
        << "nothing can follow";
    EXPECT_FALSE(cancelled) << request;
  }
}

TEST_F(ConnectionTest, WhatAClientThatSendsNoMoreAskedAheadIsAnsweredToo) {
  Start();
  RawClient client(server_->port());
  client.Send(absl::StrCat(kGet, kGet, "GET /a HT"));
  client.CloseSending();
  for (const char* answer : {"first", "second"}) {
    Next()->Answer(Text(answer), [] {});
    EXPECT_TRUE(absl::EndsWith(client.ReadAnswer(), answer));
  }
  EXPECT_EQ(client.ReadAll(), "");
}

TEST_F(ConnectionTest, AClientThatSendsNoMoreAndThenGoesIsCancelled) {
  Start();
  RawClient client(server_->port());
  client.Send(absl::StrCat(kGet, kGet));
  client.CloseSending();
  auto exchange = Next();
  absl::Notification cancelled;
  exchange->OnCancel([&cancelled] { cancelled.Notify(); });
  EXPECT_EQ(Other(), "other") << "the end of sending has been read";
  EXPECT_FALSE(cancelled.HasBeenNotified());
  client.Reset();
  WaitFor(cancelled, "the cancellation");
}

TEST_F(ConnectionTest, WhatComesWhileAnAnswerIsWrittenIsAskedAfterIt) {
  Start();
  RawClient client(server_->port());
  client.Send(kGet);
  Next()->Answer(Large(), [] {});
  client.Send(kGet);
  EXPECT_EQ(Other(), "other");
  EXPECT_FALSE(IsAsked());
  EXPECT_TRUE(absl::EndsWith(client.ReadAnswer(), "xxx"));
  Next()->Answer(Text("second"), [] {});
  EXPECT_TRUE(absl::EndsWith(client.ReadAnswer(), "second"));
}

TEST_F(ConnectionTest, AClientThatGoesAfterItsAnswerCancelsNothing) {
  Start();
  std::atomic<bool> cancelled{false};
  {
    RawClient client(server_->port());
    client.Send(kGet);
    auto exchange = Next();
    exchange->OnCancel([&cancelled] { cancelled = true; });
    absl::Notification sent;
    exchange->Answer(Text("whole"), [&sent] { sent.Notify(); });
    WaitFor(sent, "the answer to be sent");
  }
  server_ = nullptr;
  EXPECT_FALSE(cancelled);
}

TEST_F(ConnectionTest, ARefusalAfterAHeadRequestHasItsBody) {
  Start();
  RawClient client(server_->port());
  client.Send("HEAD /other HTTP/1.1\r\n\r\n");
  client.ReadAnswer(/*has_body=*/false);
  client.Send("nonsense\r\n\r\n\r\n");
  const std::string answer = client.ReadAll();
  EXPECT_TRUE(absl::StartsWith(answer, "HTTP/1.1 400 ")) << answer;
  EXPECT_FALSE(absl::EndsWith(answer, "\r\n\r\n")) << answer;
}

TEST_F(ConnectionTest, AThousandRequestsWaitAtOnce) {
  options_.max_connections = 1000;
  Start();
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 1000; ++i) {
    clients.push_back(std::make_unique<RawClient>(server_->port()));
    clients.back()->Send(absl::StrCat(
        "POST /a HTTP/1.1\r\nContent-Length: 4\r\n\r\n", 1000 + i));
  }
  std::vector<std::unique_ptr<Exchange>> exchanges;
  for (int i = 0; i < 1000; ++i) exchanges.push_back(Next());
  for (auto& exchange : exchanges) {
    std::string body = exchange->request().body;
    exchange->Answer(Text(std::move(body)), [] {});
  }
  for (int i = 0; i < 1000; ++i) {
    const std::string answer = clients[i]->ReadAnswer();
    ASSERT_TRUE(absl::EndsWith(answer, absl::StrCat("\r\n\r\n", 1000 + i)))
        << answer;
  }
}

TEST_F(ConnectionTest, ThePortsEndWaitsForItsExchanges) {
  for (const bool is_answered : {true, false}) {
    Start();
    RawClient client(server_->port());
    client.Send(kGet);
    auto exchange = Next();
    absl::Notification cancelled;
    exchange->OnCancel([&cancelled] { cancelled.Notify(); });
    std::atomic<bool> sent{false}, ended{false};
    std::thread end([&] {
      server_ = nullptr;
      ended = true;
    });
    WaitFor(cancelled, "the cancellation");
    EXPECT_EQ(client.ReadAll(), "");
    EXPECT_FALSE(ended);
    if (is_answered) {
      exchange->Answer(Text("late"), [&] {
        EXPECT_FALSE(ended);
        sent = true;
      });
    }
    exchange = nullptr;
    Join(end, "the port's end");
    EXPECT_EQ(sent, is_answered);
  }
}

TEST_F(ConnectionTest, DrainingAnswersWhatRunsAndThenEnds) {
  Start();
  RawClient idle(server_->port()), busy(server_->port());
  idle.Send("GET /other HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(absl::EndsWith(idle.ReadAnswer(), "other"));
  busy.Send(kGet);
  auto exchange = Next();
  EXPECT_FALSE(server_->Drain(absl::Milliseconds(1)));
  EXPECT_EQ(idle.ReadAll(), "");
  HttpOptions next = options_;
  // Another socket may now listen on the port.
  next.port = server_->port();
  EXPECT_TRUE(HttpServer::Start(next, [](std::unique_ptr<Exchange>) {}).ok());
  std::thread thread([this] { EXPECT_TRUE(server_->Drain(kPatience)); });
  exchange->Answer(Text("last"), [] {});
  const std::string answer = busy.ReadAll();
  EXPECT_TRUE(absl::EndsWith(answer, "last"));
  EXPECT_TRUE(absl::StrContains(answer, "\r\nConnection: close\r\n"));
  Join(thread, "the drain");
}

}  // namespace
}  // namespace sfmamba::http
