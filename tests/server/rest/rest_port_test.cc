// Tests REST over a server's port, with real connections.

#include "server/rest/rest_port.h"

#include <sys/socket.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "httplib.h"
#include "server/server_config.h"
#include "tests/server/picture.h"
#include "tests/server/running_server.h"
#include "tests/testing/certificates.h"
#include "tests/testing/patience.h"

namespace sfmamba::server {
namespace {

constexpr char kClassify[] = "/v1/models/fake:classify";

class RestPortTest : public testing::Test {
 protected:
  RestPortTest() {
    config_.set_model_repository(NewFolder("models"));
    WriteModel(config_.model_repository(), "fake", "3", "");
    config_.set_http_port(0);
  }
  void Start() { server_ = std::make_unique<RunningServer>(config_); }

  httplib::Client Client() {
    httplib::Client client("127.0.0.1", server_->server().http_port());
    client.set_read_timeout(absl::ToInt64Seconds(kTestPatience), 0);
    return client;
  }
  // Returns the status and the body of the answer, or the error of the
  // connection.
  std::string Classify(const httplib::Headers& headers = {}) {
    auto client = Client();
    const httplib::Result answer =
        client.Post(kClassify, headers, picture_, "image/png");
    if (!answer) return httplib::to_string(answer.error());
    return absl::StrCat(answer->status, " ", answer->body);
  }

  const TimeLimit limit_{"the end of the test", kTestPatience};
  const std::string picture_ =
      EncodePng(Gradient(FakeModel::kSide, FakeModel::kSide));
  v1::ServerConfig config_;
  std::unique_ptr<RunningServer> server_;
};

TEST_F(RestPortTest, AnswersPicturesProbesAndMetrics) {
  Start();
  EXPECT_TRUE(absl::StartsWith(Classify(), "200 {\"results\":[{\"categories"));
  auto client = Client();
  EXPECT_EQ(client.Get("/readyz")->body, "ok\n");
  EXPECT_EQ(client.Get("/healthz")->body, "ok\n");
  EXPECT_TRUE(absl::StrContains(client.Get("/metrics")->body,
                                "method=\"Classify\",model=\"fake\""));
  EXPECT_TRUE(absl::StrContains(client.Get("/v1/models")->body,
                                "models/fake/versions/3"));
  EXPECT_TRUE(
      absl::StrContains(client.Get("/v2")->body, "\"version\":\"test\""));
  EXPECT_EQ(client.Get("/none")->status, 404);
  EXPECT_TRUE(absl::StrContains(server_->Log(), "\"peer\":\"ipv4:127.0.0.1:"));
}

TEST_F(RestPortTest, FailedHandshakesAreCountedAndSomeOfThemLogged) {
  const Certificate own = MakeCertificate();
  config_.set_tls_cert_file(WriteTestFile("server.pem", own.pem));
  config_.set_tls_key_file(WriteTestFile("server.key", own.key));
  Start();
  constexpr int kFailures = 40;
  const absl::Time start = absl::Now();
  for (int i = 0; i < kFailures; ++i) Client().Get("/readyz");
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  EXPECT_EQ(server_->Sum("sfmamba_tls_handshake_failures_total", {}),
            kFailures);
  const std::string line =
      "\"msg\":\"a TLS handshake has failed\",\"peer\":\"ipv4:127.0.0.1:";
  const int lines = static_cast<int>(std::vector<std::string>(
                                         absl::StrSplit(server_->Log(), line))
                                         .size()) -
                    1;
  EXPECT_GE(lines, 1);
  EXPECT_LE(lines, 5 * (seconds + 2));
  EXPECT_TRUE(absl::StrContains(server_->Log(), "\"error\":\"http request\""));
}

TEST_F(RestPortTest, WhatTheTransportRefusesIsAStatusToo) {
  config_.set_max_message_bytes(1 << 20);
  Start();
  auto client = Client();
  const httplib::Result answer =
      client.Post(kClassify, std::string(2 << 20, 'x'), "image/png");
  ASSERT_TRUE(answer) << httplib::to_string(answer.error());
  EXPECT_EQ(answer->status, 413);
  EXPECT_TRUE(absl::StartsWith(answer->body, "{\"code\":3,\"message\":"))
      << answer->body;
}

TEST_F(RestPortTest, RefusalsHaveTheirPathsFormAndMayBeRead) {
  config_.set_max_message_bytes(1 << 20);
  config_.add_allowed_origins("https://a.org");
  Start();
  auto client = Client();
  const auto ask = [&client](const httplib::Headers& headers,
                             const std::string& body) {
    return client.Post("/v2/models/fake/infer", headers, body, "a");
  };
  const auto status_of = [](const httplib::Result& answer) {
    EXPECT_TRUE(absl::StartsWith(answer->body, "{\"error\":")) << answer->body;
    return answer->status;
  };
  EXPECT_EQ(status_of(ask({{"Expect", "miracles"}}, "x")), 417);
  EXPECT_EQ(status_of(ask({{"A", std::string(20'000, 'x')}}, "x")), 431);
  // The next errors occur after the server has read the headers. The server
  // then knows the origin of the web page, so these errors have CORS headers.
  const std::pair<std::string, std::string> page = {"Origin", "https://a.org"};
  const auto expect = [&](int status, const httplib::Result& answer) {
    EXPECT_EQ(status_of(answer), status);
    EXPECT_EQ(answer->get_header_value("Access-Control-Allow-Origin"),
              page.second);
  };
  expect(413, ask({page}, std::string(2 << 20, 'x')));
  expect(415, ask({page, {"Content-Encoding", "br"}}, "x"));
  expect(405, client.Get("/v2/models/fake/infer", {page}));
  const auto allowed = [&client](const std::string& origin) {
    const httplib::Result answer = client.Get("/readyz", {{"Origin", origin}});
    EXPECT_EQ(answer->status, 200);
    return answer->get_header_value("Access-Control-Allow-Origin");
  };
  EXPECT_EQ(allowed(page.second), page.second);
  EXPECT_EQ(allowed("https://b.org"), "");
}

TEST_F(RestPortTest, ThereMayBeNoPort) {
  config_.set_http_port(-1);
  Start();
  EXPECT_EQ(server_->server().http_port(), -1);
  EXPECT_TRUE(server_->server().Shutdown());
}

TEST_F(RestPortTest, APortInUseIsNamed) {
  Start();
  observability::Logger log(stderr, observability::LogLevel::kError,
                            observability::LogFormat::kText);
  Server::Options options;
  options.config = WithDefaults(config_);
  options.config.set_metrics_port(0);
  options.config.set_port(0);
  options.config.set_http_port(server_->server().http_port());
  const absl::Status status = Server::Start(options, &log).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(absl::StrContains(
      status.message(),
      absl::StrCat("HTTP port: 127.0.0.1:", server_->server().http_port())))
      << status;
}

TEST_F(RestPortTest, ACallThatRunsIsAnsweredBeforeTheServerStops) {
  Start();
  server_->gate().Close();
  std::string answer;
  std::thread caller([this, &answer] { answer = Classify(); });
  server_->gate().WaitForBatch();
  bool clean = false;
  std::thread stopper([this, &clean] { clean = server_->server().Shutdown(); });
  // The server refuses new requests as DRAINING or closes the port. Until then,
  // a request may time out.
  std::string refused = Classify({{"X-Request-Timeout", "0.05"}});
  while (absl::StartsWith(refused, "4") || absl::StartsWith(refused, "504")) {
    refused = Classify({{"X-Request-Timeout", "0.05"}});
  }
  const bool has_answer = absl::ascii_isdigit(refused[0]);
  EXPECT_TRUE(!has_answer ||
              absl::StrContains(refused, "\"reason\":\"DRAINING\""))
      << refused;
  server_->gate().Open();
  Join(caller, "the end of the call");
  EXPECT_TRUE(absl::StartsWith(answer, "200 ")) << answer;
  Join(stopper, "the end of the server");
  EXPECT_TRUE(clean);
}

TEST_F(RestPortTest, ACallThatNeverEndsIsGivenUp) {
  config_.mutable_drain_timeout()->set_nanos(50'000'000);
  Start();
  server_->gate().Close();
  std::string answer;
  std::thread caller([this, &answer] { answer = Classify(); });
  server_->gate().WaitForBatch();
  EXPECT_FALSE(server_->server().Shutdown());
  server_->gate().Open();
  Join(caller, "the end of the call");
}

TEST_F(RestPortTest, AClientThatResetsItsConnectionIsCounted) {
  Start();
  server_->gate().Close();
  {
    // The model runs the first request's batch, so the second request waits in
    // the queue.
    std::thread first([this] { Classify(); });
    server_->gate().WaitForBatch();
    auto client = Client();
    client.set_read_timeout(0, 100'000);
    client.set_socket_options([](int socket) {
      const linger reset = {1, 0};  // Closing sends a TCP reset.
      setsockopt(socket, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    });
    EXPECT_FALSE(client.Post(kClassify, picture_, "image/png"));
    EXPECT_EQ(server_->WaitForSum("sfmamba_requests_total",
                                  {R"(code="CANCELLED")"}, 1),
              1);
    server_->gate().Open();
    Join(first, "the first call");
  }
}

}  // namespace
}  // namespace sfmamba::server
