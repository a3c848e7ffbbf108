#include "server/http/metrics_server.h"

#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/steady_clock.h"
#include "gtest/gtest.h"
#include "httplib.h"
#include "server/http/gzip.h"
#include "server/http/room.h"
#include "server/observability/metrics.h"
#include "tests/server/http/raw_client.h"
#include "tests/testing/http.h"

namespace sfmamba::http {
namespace {

// GPU libraries have about this much thread-local memory. A thread's stack must
// be large enough for this memory.
thread_local char large_storage[256 << 10] = {1};

class MetricsServerTest : public testing::Test {
 protected:
  std::unique_ptr<HttpServer> Start(const std::string& host, int port = 0) {
    auto server = StartMetricsServer(host, port, &metrics_);
    EXPECT_TRUE(server.ok()) << server.status();
    return server.ok() ? *std::move(server) : nullptr;
  }

  observability::Metrics metrics_{observability::BuildInfo{}};
};

TEST_F(MetricsServerTest, ServesInAProcessWithMuchThreadLocalStorage) {
  EXPECT_EQ(
      std::accumulate(std::begin(large_storage), std::end(large_storage), 0),
      1);
  auto server = Start("127.0.0.1");
  ASSERT_NE(server, nullptr);
  EXPECT_NE(HttpGet(server->port(), "/metrics").find("sfmamba_build_info{"),
            std::string::npos);
}

TEST_F(MetricsServerTest, SaysItsFormatAndPacksIt) {
  auto server = Start("127.0.0.1");
  ASSERT_NE(server, nullptr);
  httplib::Client client("127.0.0.1", server->port());
  client.set_decompress(false);
  auto answer = client.Get("/metrics", {{"Accept-Encoding", "gzip"}});
  ASSERT_TRUE(answer) << httplib::to_string(answer.error());
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->get_header_value("Content-Type"),
            "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(answer->get_header_value("Content-Encoding"), "gzip");
  EXPECT_EQ(answer->body.substr(0, 2), "\x1f\x8b");
}

TEST_F(MetricsServerTest, RequestsShareAPageThatWasBegunAfterTheyCame) {
  MetricsPage page(&metrics_);
  const auto refused = [&page](absl::Time came, bool packs = false) {
    HttpRequest request;
    request.came = came;
    if (packs) request.headers = {{"accept-encoding", "gzip"}};
    std::string text = page.Answer(request).body[0];
    if (packs) {
      Room room(1 << 20, 1);
      Room::Hold hold = room.TakeAnyway(0);
      EXPECT_EQ(Unpack(1 << 20, &hold, &text), std::nullopt);
    }
    return Samples(text)[R"(sfmamba_connections_refused_total{port="http"})"];
  };
  const absl::Time before = base::SteadyNow();
  EXPECT_EQ(refused(before), 0);
  metrics_.HttpConnectionRefused();
  EXPECT_EQ(refused(before), 0);
  EXPECT_EQ(refused(before, /*packs=*/true), 0);
  EXPECT_EQ(refused(base::SteadyNow()), 1);
  metrics_.HttpConnectionRefused();
  EXPECT_EQ(refused(base::SteadyNow(), /*packs=*/true), 2);
  EXPECT_EQ(refused(before, /*packs=*/true), 2);
  EXPECT_EQ(refused(before), 2);
}

TEST_F(MetricsServerTest, OtherPathsAndMethodsAreNotFound) {
  auto server = Start("127.0.0.1");
  ASSERT_NE(server, nullptr);
  httplib::Client client("127.0.0.1", server->port());
  for (const char* path : {"/", "/other", "/metrics/", "/metrics2"}) {
    auto answer = client.Get(path);
    ASSERT_TRUE(answer) << path;
    EXPECT_EQ(answer->status, 404) << path;
  }
  auto answer = client.Post("/metrics");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 404);
}

TEST_F(MetricsServerTest, NoBodyIsTaken) {
  auto server = Start("127.0.0.1");
  ASSERT_NE(server, nullptr);
  httplib::Client client("127.0.0.1", server->port());
  auto answer = client.Post("/metrics", "x", "text/plain");
  ASSERT_TRUE(answer) << httplib::to_string(answer.error());
  EXPECT_EQ(answer->status, 413);
}

TEST_F(MetricsServerTest, ConnectionsBeyondTheLimitAreCountedAsRefused) {
  auto server = Start("127.0.0.1");
  ASSERT_NE(server, nullptr);
  constexpr int kMost = 256;
  std::vector<std::unique_ptr<RawClient>> silent;
  for (int i = 0; i < kMost + 10; ++i) {
    silent.push_back(std::make_unique<RawClient>(server->port()));
  }
  const std::string metrics = HttpGet(server->port(), "/metrics");
  EXPECT_TRUE(absl::StrContains(
      metrics, "sfmamba_connections_refused_total{port=\"http\"} 11\n"))
      << metrics;
}

TEST_F(MetricsServerTest, AnIpv6AddressMayHaveBrackets) {
  if (!StartMetricsServer("::1", 0, &metrics_).ok()) {
    GTEST_SKIP() << "this machine has no IPv6";
  }
  auto server = Start("[::1]");
  ASSERT_NE(server, nullptr);
  auto answer = httplib::Client("::1", server->port()).Get("/metrics");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
}

TEST_F(MetricsServerTest, APortInUseAndAForeignAddressAreNamed) {
  auto first = Start("127.0.0.1");
  ASSERT_NE(first, nullptr);
  absl::Status status =
      StartMetricsServer("127.0.0.1", first->port(), &metrics_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(),
            absl::StrCat("cannot bind the metrics port: 127.0.0.1:",
                         first->port(), ": Address already in use"));
  status = StartMetricsServer("192.0.2.1", 0, &metrics_).status();
  EXPECT_EQ(status.message(),
            "cannot bind the metrics port: 192.0.2.1:0: Cannot assign "
            "requested address");
}

}  // namespace
}  // namespace sfmamba::http
