#include "server/http/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "server/http/gzip.h"
#include "tests/server/http/raw_client.h"
#include "tests/testing/http.h"
#include "tests/testing/patience.h"

namespace sfmamba::http {
namespace {

using Clients = std::vector<std::unique_ptr<RawClient>>;

HttpResponse Text(std::string text) {
  HttpResponse response;
  response.headers = {{"Content-Type", "text/plain"}};
  response.body = {std::move(text)};
  return response;
}

// Answers /hello with "hello" and /large with ten megabytes. Answers /echo with
// the request, as "METHOD|body|a=...|x-header=...".
void Serve(std::unique_ptr<Exchange> exchange) {
  const HttpRequest& request = exchange->request();
  HttpResponse response;
  if (request.path == "/hello") {
    response = Text("hello");
  } else if (request.path == "/large") {
    response.body.assign(10, std::string(1'000'000, 'x'));
  } else if (request.path == "/echo") {
    std::string text = absl::StrCat(request.method, "|", request.body);
    for (const auto& [name, value] : request.query) {
      absl::StrAppend(&text, "|", name, "=", value);
    }
    const auto header = request.headers.find("x-header");
    if (header != request.headers.end()) {
      absl::StrAppend(&text, "|x-header=", header->second);
    }
    response = Text(text);
  } else if (request.path == "/throws") {
    throw std::runtime_error("thrown");
  } else {
    response.status = 404;
  }
  exchange->Answer(std::move(response), [] {});
}

class HttpServerTest : public testing::Test {
 protected:
  void Start(HttpServer::Handler handler = Serve) {
    options_.host = "127.0.0.1";
    options_.refused = [this] { ++refused_; };
    auto server = HttpServer::Start(options_, std::move(handler));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  // Starts a server with one handler thread, which waits in the first request
  // until `go_on_` is notified.
  void StartWithOneThread() {
    options_.threads = 1;
    Start([this](std::unique_ptr<Exchange> exchange) {
      handled_.push_back(exchange->request().path);
      if (handled_.size() == 1) {
        begun_.Notify();
        go_on_.WaitForNotification();
      }
      Serve(std::move(exchange));
    });
  }

  // Opens `count` connections and sends the beginning of a request over each.
  Clients Dripping(int count) {
    Clients clients;
    for (int i = 0; i < count; ++i) {
      clients.push_back(std::make_unique<RawClient>(server_->port()));
      clients.back()->Send("GET /hello HTTP/1.1\r\n");
    }
    return clients;
  }

  std::string Ask(const std::string& request) {
    RawClient client(server_->port());
    client.Send(request);
    return client.ReadAnswer();
  }

  // Returns after the port's thread has refused an invalid request. The thread
  // handles events one after another, so all earlier events are handled too.
  void AwaitRoundTrip() { Ask("nonsense\r\n\r\n"); }
  // Returns the file descriptors of the port's connections.
  std::vector<int> Connections() const {
    std::vector<int> found;
    for (int fd = 0; fd < 1000; ++fd) {
      sockaddr_in own = {}, peer = {};
      socklen_t size = sizeof(own), peer_size = sizeof(peer);
      if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) ==
              0 &&
          getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) == 0 &&
          ntohs(own.sin_port) == server_->port()) {
        found.push_back(fd);
      }
    }
    return found;
  }

  std::atomic<int> refused_{0};
  HttpOptions options_;
  // The next members are used by StartWithOneThread().
  absl::Notification begun_, go_on_;
  std::vector<std::string> handled_;  // The paths of handled requests.
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersAndClosesTheConnectionIfAsked) {
  Start();
  RawClient client(server_->port());
  client.Send("GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  const std::string answer = client.ReadAll();
  EXPECT_TRUE(absl::StartsWith(answer, "HTTP/1.1 200 OK\r\n")) << answer;
  EXPECT_TRUE(absl::StrContains(answer, "\r\nConnection: close\r\n"));
  EXPECT_TRUE(absl::EndsWith(answer, "\r\n\r\nhello")) << answer;
  EXPECT_TRUE(absl::StartsWith(Ask("GET / HTTP/1.1\r\n\r\n"), "HTTP/1.1 404"));
  EXPECT_EQ(HttpGet(server_->port(), "/large").size(), 10'000'000);
}

// With TCP's delay, the end of an answer would wait until the client
// acknowledges the rest.
TEST_F(HttpServerTest, ConnectionsSendWithoutDelay) {
  Start();
  RawClient client(server_->port());
  client.Send("GET /hello HTTP/1.1\r\n\r\n");
  client.ReadAnswer();
  const std::vector<int> connections = Connections();
  ASSERT_EQ(connections.size(), 1);
  int no_delay = 0;
  socklen_t length = sizeof(no_delay);
  getsockopt(connections[0], IPPROTO_TCP, TCP_NODELAY, &no_delay, &length);
  EXPECT_NE(no_delay, 0);
}

TEST_F(HttpServerTest, ARequestWhoseClientHasGoneIsNotHandled) {
  StartWithOneThread();
  RawClient first(server_->port()), gone(server_->port());
  first.Send("GET /first HTTP/1.1\r\n\r\n");
  WaitFor(begun_, "the first request");
  gone.Send("GET /gone HTTP/1.1\r\n\r\n");
  AwaitRoundTrip();
  gone.Reset();
  WaitUntil([this] { return Connections().size() == 1; }, "its end");
  AwaitRoundTrip();
  go_on_.Notify();
  Ask("GET /last HTTP/1.1\r\n\r\n");
  EXPECT_EQ(handled_, (std::vector<std::string>{"/first", "/last"}));
}

// A compressed request may take long, because its body may have any size up to
// the limit.
TEST_F(HttpServerTest, WhatMayTakeLongIsHandledAfterTheRest) {
  StartWithOneThread();
  RawClient first(server_->port()), packed(server_->port()),
      plain(server_->port());
  first.Send("GET /first HTTP/1.1\r\n\r\n");
  WaitFor(begun_, "the first request");
  const std::string body = Gzip("x");
  packed.Send(absl::StrCat(
      "POST /packed HTTP/1.1\r\nContent-Encoding: gzip\r\nContent-Length: ",
      body.size(), "\r\n\r\n", body));
  AwaitRoundTrip();
  plain.Send("GET /plain HTTP/1.1\r\n\r\n");
  AwaitRoundTrip();
  AwaitRoundTrip();
  go_on_.Notify();
  packed.ReadAnswer();
  plain.ReadAnswer();
  EXPECT_EQ(handled_,
            (std::vector<std::string>{"/first", "/plain", "/packed"}));
}

TEST_F(HttpServerTest, ManyShortRequestsOfOneClientDelayNoOther) {
  StartWithOneThread();
  Clients many;
  for (int i = 0; i < 50; ++i) {
    many.push_back(std::make_unique<RawClient>(server_->port()));
    many.back()->Send(i % 2 == 0 ? "GET /many HTTP/1.1\r\n\r\n"
                                 : "POST /many HTTP/1.1\r\n"
                                   "Content-Length: 1\r\n\r\nx");
  }
  WaitFor(begun_, "the first request");
  AwaitRoundTrip();
  RawClient other(server_->port(), 0, /*from=*/2);
  other.Send("GET /other HTTP/1.1\r\n\r\n");
  AwaitRoundTrip();
  AwaitRoundTrip();
  go_on_.Notify();
  for (const auto& client : many) client->ReadAnswer();
  other.ReadAnswer();
  const auto place = std::find(handled_.begin(), handled_.end(), "/other");
  EXPECT_LT(place - handled_.begin(), 10);
}

TEST_F(HttpServerTest, AHandlerThatThrowsIsA500AndThePortGoesOn) {
  Start();
  EXPECT_TRUE(
      absl::StartsWith(Ask("GET /throws HTTP/1.1\r\n\r\n"), "HTTP/1.1 500"));
  EXPECT_EQ(HttpGet(server_->port(), "/hello"), "hello");
}

TEST_F(HttpServerTest, AConnectionHasManyRequestsWithBodies) {
  Start();
  RawClient client(server_->port());
  client.Send(
      "POST /echo?a=1%202 HTTP/1.1\r\nContent-Length: 4\r\nX-Header: b\r\n\r\n"
      "body");
  std::string answer = client.ReadAnswer();
  EXPECT_TRUE(absl::EndsWith(answer, "\r\n\r\nPOST|body|a=1 2|x-header=b"))
      << answer;
  EXPECT_TRUE(absl::StrContains(answer, "\r\nConnection: keep-alive\r\n"));
  client.Send(
      "PUT /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n");
  answer = client.ReadAnswer();
  EXPECT_TRUE(absl::EndsWith(answer, "\r\n\r\nPUT|abc0123456789")) << answer;
  client.Send("HEAD /hello HTTP/1.1\r\n\r\n");
  answer = client.ReadAnswer(/*has_body=*/false);
  EXPECT_TRUE(absl::StrContains(answer, "\r\nContent-Length: 5\r\n"));
  client.Send("GET /hello HTTP/1.1\r\n\r\n");
  answer = client.ReadAnswer();
  EXPECT_TRUE(absl::StartsWith(answer, "HTTP/1.1 200 OK\r\n")) << answer;
  EXPECT_TRUE(absl::EndsWith(answer, "\r\n\r\nhello"));
}

TEST_F(HttpServerTest, AHundredRequestsAtOnceAreAnsweredInTheirOrder) {
  Start();
  RawClient client(server_->port());
  std::string requests;
  for (int i = 0; i < 100; ++i) {
    absl::StrAppend(&requests, "GET /echo?i=", i, " HTTP/1.1\r\n\r\n");
  }
  client.Send(requests);
  for (int i = 0; i < 100; ++i) {
    const std::string answer = client.ReadAnswer();
    ASSERT_TRUE(absl::EndsWith(answer, absl::StrCat("\r\n\r\nGET||i=", i)))
        << answer;
  }
}

TEST_F(HttpServerTest, ABodyMayWaitForContinue) {
  Start();
  RawClient client(server_->port());
  client.Send(
      "POST /echo HTTP/1.1\r\nContent-Length: 4\r\nExpect: 100-continue\r\n"
      "\r\n");
  EXPECT_EQ(client.ReadAnswer(), "HTTP/1.1 100 Continue\r\n\r\n");
  client.Send("body");
  EXPECT_TRUE(absl::EndsWith(client.ReadAnswer(), "\r\n\r\nPOST|body"));
}

TEST_F(HttpServerTest, ABodyThatDoesNotWaitNeedsNoContinue) {
  Start();
  RawClient client(server_->port());
  client.Send(
      "POST /echo HTTP/1.1\r\nContent-Length: 4\r\nExpect: 100-continue\r\n"
      "\r\nbo");
  client.Send("dy");
  const std::string answer = client.ReadAnswer();
  EXPECT_TRUE(absl::StartsWith(answer, "HTTP/1.1 200")) << answer;
  EXPECT_TRUE(absl::EndsWith(answer, "\r\n\r\nPOST|body")) << answer;
}

TEST_F(HttpServerTest, WhatItDoesNotServeIsRefused) {
  options_.max_body_bytes = 100;
  Start();
  const std::string tail = "\r\n\r\n";
  const std::pair<std::string, int> requests[] = {
      {"POST /echo HTTP/1.1\r\nContent-Length: 101" + tail, 413},
      {"POST /echo HTTP/1.1\r\nContent-Length: 999999999999999999" + tail, 413},
      {"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked" + tail + "65\r\n" +
           std::string(101, 'x'),
       413},
      {"GET /hello HTTP/1.1\r\nA: " + std::string(20'000, 'x'), 431},
      {"GET /hello HTTP/1.1\r\nnonsense" + tail, 400},
      {"GET /hello HTTP/2.0" + tail, 505},
      {"POST /echo HTTP/1.1\r\nContent-Length: 1\r\nContent-Encoding: br" +
           tail,
       415},
  };
  for (const auto& [request, status] : requests) {
    RawClient client(server_->port());
    client.Send(request);
    const std::string answer = client.ReadAll();
    EXPECT_TRUE(absl::StartsWith(answer, absl::StrCat("HTTP/1.1 ", status)))
        << request << answer;
    EXPECT_TRUE(absl::StrContains(answer, "\r\nConnection: close\r\n"));
  }
  EXPECT_TRUE(absl::StartsWith(
      Ask("GET /hello HTTP/1.1\r\nRange: bytes=0-,0-,0-\r\n\r\n"),
      "HTTP/1.1 200"));
}

TEST_F(HttpServerTest, UnpacksBodies) {
  options_.max_body_bytes = 1000;
  Start();
  const auto ask = [this](const std::string& body) {
    return Ask(absl::StrCat(
        "POST /echo HTTP/1.1\r\nConnection: close\r\nContent-Encoding: gzip"
        "\r\nContent-Length: ",
        body.size(), "\r\n\r\n", body));
  };
  const std::string text(1000, 'x');
  EXPECT_TRUE(absl::EndsWith(ask(Gzip(text)), "POST|" + text));
  EXPECT_TRUE(absl::StartsWith(ask(Gzip(text + "x")), "HTTP/1.1 413 "));
  EXPECT_TRUE(absl::StartsWith(ask("none"), "HTTP/1.1 400 "));
  EXPECT_TRUE(absl::EndsWith(ask(""), "POST|"));
  WaitUntil([this] { return server_->held_bytes() == 0; }, "the room");
}

TEST_F(HttpServerTest, ManySlowClientsKeepNobodyFromAnAnswer) {
  options_.max_connections = 64;
  options_.head_time = absl::Hours(1);
  Start();
  const Clients dripping = Dripping(200);
  EXPECT_EQ(HttpGet(server_->port(), "/hello"), "hello");
  EXPECT_GE(refused_.load(), 200 - 64);
  EXPECT_EQ(dripping.front()->ReadAll(), "");
}

TEST_F(HttpServerTest, ClientsThatDoNotReadKeepNobodyFromAnAnswer) {
  options_.answer_time = absl::Hours(1);
  Start();
  Clients unread;
  for (int i = 0; i < 16; ++i) {
    unread.push_back(std::make_unique<RawClient>(server_->port(), 4096));
    unread.back()->Send("GET /large HTTP/1.1\r\n\r\n");
  }
  EXPECT_EQ(HttpGet(server_->port(), "/hello"), "hello");
}

TEST_F(HttpServerTest, AHeadThatTakesTooLongEndsTheConnection) {
  options_.head_time = absl::Milliseconds(50);
  Start();
  RawClient client(server_->port());
  client.Send("GET /hello HTTP/1.1\r\n");
  EXPECT_TRUE(absl::StartsWith(client.ReadAll(), "HTTP/1.1 408"));
}

TEST_F(HttpServerTest, AnAnswerThatIsNotTakenInTimeEndsTheConnection) {
  options_.answer_time = absl::Milliseconds(50);
  Start();
  RawClient unread(server_->port(), 4096);
  unread.Send("GET /large HTTP/1.1\r\n\r\n");
  WaitUntil([&unread] { return !unread.Send("x"); }, "the connection's end");
}

TEST_F(HttpServerTest, EndsWithConnectionsOpen) {
  Start();
  const Clients dripping = Dripping(8);
  server_.reset();
  EXPECT_EQ(dripping.front()->ReadAll(), "");
}

}  // namespace
}  // namespace sfmamba::http
