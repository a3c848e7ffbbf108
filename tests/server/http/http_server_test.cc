#include "server/http/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "httplib.h"
#include "tests/testing/http.h"
#include "tests/testing/patience.h"

namespace sfmamba::http {
namespace {

// One connection to 127.0.0.1.
class Client {
 public:
  explicit Client(int port, int receive_buffer = 0)
      : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (receive_buffer > 0) {
      setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer,
                 sizeof(receive_buffer));
    }
    EXPECT_EQ(
        connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)),
        0);
  }
  ~Client() { close(fd_); }
  Client(const Client&) = delete;

  // False if the server has closed the connection.
  bool Send(const std::string& text) {
    return send(fd_, text.data(), text.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(text.size());
  }
  // What comes until the server ends the connection.
  std::string ReadAll() {
    TimeLimit limit("the end of the connection");
    std::string text;
    char bytes[4096];
    for (ssize_t n; (n = recv(fd_, bytes, sizeof(bytes), 0)) > 0;) {
      text.append(bytes, n);
    }
    return text;
  }

 private:
  const int fd_;
};

using Clients = std::vector<std::unique_ptr<Client>>;

// Serves "hello" at /hello, and ten megabytes at /large.
class HttpServerTest : public testing::Test {
 protected:
  void Start() {
    options_.host = "127.0.0.1";
    options_.refused = [this] { ++refused_; };
    auto server = HttpServer::Start(options_, [](httplib::Server& routes) {
      routes.Get("/hello",
                 [](const httplib::Request&, httplib::Response& response) {
                   response.set_content("hello", "text/plain");
                 });
      routes.Get(
          "/large", [](const httplib::Request&, httplib::Response& response) {
            response.set_content(std::string(10'000'000, 'x'), "image/x");
          });
      routes.Get("/throws", [](const httplib::Request&, httplib::Response&) {
        throw std::runtime_error("thrown");
      });
    });
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  // `count` connections, each with the beginning of a request.
  Clients Dripping(int count) {
    Clients clients;
    for (int i = 0; i < count; ++i) {
      clients.push_back(std::make_unique<Client>(server_->port()));
      clients.back()->Send("GET /hello HTTP/1.1\r\n");
    }
    return clients;
  }

  std::string Ask(const std::string& request) {
    Client client(server_->port());
    client.Send(request);
    return client.ReadAll();
  }

  std::atomic<int> refused_{0};
  HttpServer::Options options_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersAndClosesTheConnection) {
  Start();
  const std::string answer = Ask("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(absl::StartsWith(answer, "HTTP/1.1 200")) << answer;
  EXPECT_TRUE(absl::EndsWith(answer, "\r\n\r\nhello")) << answer;
  EXPECT_TRUE(absl::StartsWith(Ask("GET / HTTP/1.1\r\n\r\n"), "HTTP/1.1 404"));
  EXPECT_TRUE(
      absl::StartsWith(Ask("GET /throws HTTP/1.1\r\n\r\n"), "HTTP/1.1 500"));
  EXPECT_EQ(HttpGet(server_->port(), "/large").size(), 10'000'000);
}

TEST_F(HttpServerTest, WhatItDoesNotServeIsRefused) {
  Start();
  EXPECT_TRUE(absl::StartsWith(
      Ask("POST /hello HTTP/1.1\r\nContent-Length: 600000000\r\n\r\nxxxx"),
      "HTTP/1.1 413"));
  EXPECT_TRUE(absl::StartsWith(
      Ask(absl::StrCat("GET /hello HTTP/1.1\r\nA: ", std::string(20'000, 'x'))),
      "HTTP/1.1 431"));
  EXPECT_TRUE(absl::StartsWith(Ask("GET /hello HTTP/1.1\r\nnonsense\r\n\r\n"),
                               "HTTP/1.1 400"));
  EXPECT_TRUE(absl::StartsWith(
      Ask("GET /hello HTTP/1.1\r\nRange: bytes=0-,0-,0-\r\n\r\n"),
      "HTTP/1.1 200"));
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
    unread.push_back(std::make_unique<Client>(server_->port(), 4096));
    unread.back()->Send("GET /large HTTP/1.1\r\n\r\n");
  }
  EXPECT_EQ(HttpGet(server_->port(), "/hello"), "hello");
}

TEST_F(HttpServerTest, AHeadThatTakesTooLongEndsTheConnection) {
  options_.head_time = absl::Milliseconds(50);
  Start();
  EXPECT_EQ(Ask("GET /hello HTTP/1.1\r\n"), "");
}

TEST_F(HttpServerTest, AnAnswerThatIsNotTakenInTimeEndsTheConnection) {
  options_.answer_time = absl::Milliseconds(50);
  Start();
  Client unread(server_->port(), 4096);
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
