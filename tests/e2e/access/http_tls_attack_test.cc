// Attacks on the HTTP port with TLS. The server must still answer other
// clients, and its memory must not grow with what an attacker sends.

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/e2e/raw_http2.h"
#include "tests/e2e/server_process.h"
#include "tests/server/http/tls_client.h"
#include "tests/testing/certificates.h"
#include "tests/testing/http.h"
#include "tests/testing/patience.h"

namespace sfmamba {
namespace {

using http::TlsClient;
using http::TlsGet;

constexpr int64_t kMiB = 1 << 20;
// The first eleven bytes of a TLS handshake record that claims 512 bytes.
constexpr absl::string_view kHello(
    "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);

class HttpTlsAttackTest : public testing::Test {
 protected:
  void SetUp() override {
    std::signal(SIGPIPE, SIG_IGN);
    ASSERT_TRUE(server_.WaitForLog("\"msg\":\"serving\"")) << server_.output();
    before_ = server_.resident_bytes();
  }

  // Expects that other clients are still answered after the attack, and that
  // the server's memory has not grown.
  void TearDown() override {
    EXPECT_TRUE(IsServing());
    EXPECT_NE(HttpGet(server_.metrics_port(), "/metrics"), "");
    EXPECT_LT(server_.peak_resident_bytes(), before_ + 150 * kMiB);
  }
  bool IsServing() { return TlsGet(server_.http_port(), "/healthz") == "ok\n"; }
  double Failures() {
    const auto samples = Samples(HttpGet(server_.metrics_port(), "/metrics"));
    const auto found = samples.find("sfmamba_tls_handshake_failures_total");
    return found == samples.end() ? 0 : found->second;
  }

  const Certificate own_ = MakeCertificate();
  ServerProcess server_{
      {"--model_repository=" + WriteTinyModel(),
       "--tls_cert_file=" + WriteTestFile("server.pem", own_.pem),
       "--tls_key_file=" + WriteTestFile("server.key", own_.key)}};
  int64_t before_ = 0;
};

TEST_F(HttpTlsAttackTest, SilentAndDrippingHandshakesHoldUpNobody) {
  std::vector<std::unique_ptr<RawConnection>> connections;
  for (int i = 0; i < 2000; ++i) {
    connections.push_back(std::make_unique<RawConnection>(server_.http_port()));
    if (i % 2 == 0) connections.back()->SendSome(kHello);
  }
  for (int i = 0; i < 10; ++i) {
    for (const auto& connection : connections) connection->SendSome("r");
    EXPECT_TRUE(IsServing());
  }
}

TEST_F(HttpTlsAttackTest, AFloodOfHandshakesHoldsUpNobody) {
  for (int i = 0; i < 5; ++i) {
    std::vector<std::unique_ptr<TlsClient>> clients;
    for (int k = 0; k < 200; ++k) {
      clients.push_back(std::make_unique<TlsClient>(server_.http_port()));
    }
    for (const auto& client : clients) EXPECT_TRUE(client->Greet());
    EXPECT_TRUE(IsServing());
  }
}

TEST_F(HttpTlsAttackTest, WhatIsNoTlsEndsCleanly) {
  const double before = Failures();
  for (const std::string& bytes :
       {std::string("GET /metrics HTTP/1.1\r\n\r\n"), Http2Preface(),
        std::string(100'000, '\xff'), std::string(3, '\0'),
        std::string("\x16\x03\x01\xff\xff") + std::string(70'000, 'x')}) {
    RawConnection connection(server_.http_port());
    connection.Send(bytes);
    TimeLimit limit("the end of the connection");
    connection.WaitForEnd();
  }
  EXPECT_GE(Failures(), before + 4);
}

TEST_F(HttpTlsAttackTest, HalfClosedHandshakesEnd) {
  for (int i = 0; i < 100; ++i) {
    TlsClient client(server_.http_port());
    if (i % 2 == 0) client.SendRaw(std::string(kHello));
    client.CloseSending();
    EXPECT_TRUE(client.WaitForEnd());
  }
}

TEST_F(HttpTlsAttackTest, HeadersWithoutEndAreNotRead) {
  TlsClient client(server_.http_port());
  ASSERT_TRUE(client.Greet());
  std::string much = "GET /healthz HTTP/1.1\r\n";
  for (int i = 0; i < 100'000; ++i) much += "A: b\r\n";
  int sent = 0;
  while (sent < 500 && client.Send(much)) ++sent;
  EXPECT_LT(sent, 500);
}

TEST_F(HttpTlsAttackTest, TinyRecordsHoldUpNobody) {
  TlsClient client(server_.http_port());
  ASSERT_TRUE(client.Greet());
  client.Send(
      "POST /v1/models/tiny:classify HTTP/1.1\r\n"
      "Content-Type: image/png\r\nContent-Length: 40000\r\n\r\n");
  for (int i = 0; i < 40'000; ++i) {
    if (!client.Send("x")) break;
    EXPECT_TRUE(i % 10'000 != 0 || IsServing());
  }
  // The server answers with 4xx, because the body is not a picture or arrives
  // too slowly.
  EXPECT_EQ(client.ReadAnswer().substr(0, 10), "HTTP/1.1 4");
}

}  // namespace
}  // namespace sfmamba
