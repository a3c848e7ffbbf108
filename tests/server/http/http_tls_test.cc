// Tests the HTTP port with TLS.

#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "gtest/gtest.h"
#include "server/http/http_server.h"
#include "server/security/tls_identity.h"
#include "tests/server/http/raw_client.h"
#include "tests/server/http/tls_client.h"
#include "tests/testing/certificates.h"
#include "tests/testing/patience.h"

namespace sfmamba::http {
namespace {

constexpr char kGet[] = "GET /a HTTP/1.1\r\n\r\n";

// Answers /large with ten megabytes. Answers other paths with the path and the
// size of the request's body.
void Serve(std::unique_ptr<Exchange> exchange) {
  HttpResponse response;
  if (exchange->request().path == "/large") {
    response.body.assign(10, std::string(1'000'000, 'x'));
  } else {
    response.body = {exchange->request().path, " ",
                     absl::StrCat(exchange->request().body.size())};
  }
  exchange->Answer(std::move(response), [] {});
}

std::string Post(size_t bytes) {
  return absl::StrCat("POST /b HTTP/1.1\r\nContent-Length: ", bytes, "\r\n\r\n",
                      std::string(bytes, 'x'));
}

class HttpTlsTest : public testing::Test {
 protected:
  HttpTlsTest() { std::signal(SIGPIPE, SIG_IGN); }

  void Start(const std::string& client_ca = "") {
    identity_.Set({own_.pem, own_.key, client_ca});
    auto tls = TlsContext::Create({&identity_, client_optional_});
    ASSERT_TRUE(tls.ok()) << tls.status();
    options_.tls = *std::move(tls);
    options_.handshake_failed = [this](absl::string_view peer,
                                       absl::string_view reason) {
      absl::MutexLock lock(&mu_);
      failures_.push_back(
          absl::StrCat(peer.substr(0, peer.rfind(':')), " ", reason));
    };
    options_.host = "127.0.0.1";
    auto server = HttpServer::Start(options_, Serve);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  int port() const { return server_->port(); }
  // Returns the failed handshakes, each with the peer's address and the reason.
  std::vector<std::string> failures() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return failures_;
  }
  bool IsServing() { return TlsGet(port(), "/a") == "/a 0"; }
  // Returns true if a client with these options gets an answer.
  bool Serves(const TlsClient::Options& options) {
    TlsClient client(port(), options);
    return client.Greet() && client.Send(kGet) &&
           absl::EndsWith(client.ReadAnswer(), "/a 0");
  }

  const Certificate ca_ = MakeCertificate({"ca"});
  const Certificate own_ = MakeCertificate({"localhost", &ca_});
  HttpOptions options_;
  security::CurrentTlsIdentity identity_;
  bool client_optional_ = false;
  absl::Mutex mu_;
  std::vector<std::string> failures_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpTlsTest, AConnectionHasRequestAfterRequest) {
  Start();
  TlsClient client(port(), {ca_.pem});
  ASSERT_TRUE(client.Greet()) << client.error();
  for (int i = 0; i < 3; ++i) {
    client.Send(kGet);
    EXPECT_TRUE(absl::EndsWith(client.ReadAnswer(), "\r\n\r\n/a 0"));
  }
}

TEST_F(HttpTlsTest, RequestsInOneRecordAreAllAnswered) {
  Start();
  TlsClient client(port());
  ASSERT_TRUE(client.Greet());
  // One TLS record contains the end of a body and the requests that follow it.
  client.Send(absl::StrCat(Post(100), Post(5000), kGet, Post(7)));
  for (const char* body : {"/b 100", "/b 5000", "/a 0", "/b 7"}) {
    EXPECT_TRUE(absl::EndsWith(client.ReadAnswer(), body)) << body;
  }
}

TEST_F(HttpTlsTest, BodiesAndAnswersMayBeLarge) {
  Start();
  TlsClient client(port());
  ASSERT_TRUE(client.Greet());
  client.Send(Post(20'000'000));
  EXPECT_TRUE(absl::EndsWith(client.ReadAnswer(), "/b 20000000"));
  client.Send("GET /large HTTP/1.1\r\n\r\n");
  EXPECT_GT(client.ReadAnswer().size(), 10'000'000u);
  client.Send(kGet);
  EXPECT_TRUE(absl::EndsWith(client.ReadAnswer(), "/a 0"));
}

TEST_F(HttpTlsTest, ABodyInTinyRecordsIsReadWhole) {
  Start();
  TlsClient client(port());
  ASSERT_TRUE(client.Greet());
  const std::string request = Post(2000);
  for (char c : request) client.Send(std::string(1, c));
  EXPECT_TRUE(absl::EndsWith(client.ReadAnswer(), "/b 2000"));
}

TEST_F(HttpTlsTest, TheClientThatDoesNotReadIsEndedAndHoldsUpNobody) {
  options_.answer_time = absl::Milliseconds(500);
  Start();
  TlsClient::Options little;
  little.receive_buffer = 4096;
  TlsClient client(port(), little);
  ASSERT_TRUE(client.Greet());
  client.Send("GET /large HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(IsServing());
  WaitUntil([this] { return server_->held_bytes() == 0; },
            "the answer to be given up");
}

TEST_F(HttpTlsTest, VersionsBefore12AreRefused) {
  Start();
  TlsClient::Options options;
  options.max_version = TLS1_1_VERSION;
  EXPECT_FALSE(Serves(options));
  options.max_version = options.min_version = TLS1_2_VERSION;
  EXPECT_TRUE(Serves(options));
  options.max_version = options.min_version = TLS1_3_VERSION;
  EXPECT_TRUE(Serves(options));
}

TEST_F(HttpTlsTest, TheServerChoosesTheCipher) {
  Start();
  TlsClient::Options options;
  options.max_version = TLS1_2_VERSION;
  std::vector<std::string> chosen;
  for (const char* ciphers :
       {"AES128+ECDHE:AES256+ECDHE", "AES256+ECDHE:AES128+ECDHE"}) {
    TlsClient client(port(), options);
    ASSERT_EQ(SSL_set_cipher_list(client.ssl(), ciphers), 1);
    ASSERT_TRUE(client.Greet()) << client.error();
    chosen.push_back(SSL_get_cipher_name(client.ssl()));
  }
  EXPECT_EQ(chosen[0], chosen[1]);
}

TEST_F(HttpTlsTest, TheProtocolIsHttp11) {
  Start();
  TlsClient::Options options;
  options.protocols = "\x02h2\x08http/1.1";
  TlsClient client(port(), options);
  ASSERT_TRUE(client.Greet());
  const unsigned char* protocol = nullptr;
  unsigned int size = 0;
  SSL_get0_alpn_selected(client.ssl(), &protocol, &size);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(protocol), size),
            "http/1.1");
  options.protocols = "\x02h2";
  EXPECT_FALSE(Serves(options));
}

TEST_F(HttpTlsTest, ClientsMustShowACertificateOfTheirCa) {
  Start(ca_.pem);
  const Certificate good = MakeCertificate({"client", &ca_});
  const Certificate expired = MakeCertificate({"client", &ca_, true});
  const Certificate other_ca = MakeCertificate({"ca"});
  const Certificate other = MakeCertificate({"client", &other_ca});
  for (int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsClient::Options options;
    options.max_version = version;
    EXPECT_FALSE(Serves(options)) << "without one";
    options.certificate = &expired;
    EXPECT_FALSE(Serves(options)) << "expired";
    options.certificate = &other;
    EXPECT_FALSE(Serves(options)) << "of another CA";
    options.certificate = &good;
    EXPECT_TRUE(Serves(options));
  }
}

TEST_F(HttpTlsTest, ACertificateMayBeOptional) {
  client_optional_ = true;
  Start(ca_.pem);
  EXPECT_TRUE(IsServing()) << "without one";
  const Certificate expired = MakeCertificate({"client", &ca_, true});
  TlsClient::Options options;
  options.certificate = &expired;
  EXPECT_FALSE(Serves(options)) << "expired";
}

TEST_F(HttpTlsTest, AClientIsToldWhyItIsRefused) {
  Start(ca_.pem);
  TlsClient client(port());
  client.Greet();
  // The client sends a body before it reads the server's refusal. The server
  // must nevertheless end the connection without a TCP reset. After a reset,
  // the client could not read the error.
  client.Send(Post(100'000));
  client.ReadAll();
  EXPECT_TRUE(absl::StrContains(client.error(), "certificate required"))
      << client.error();
}

TEST_F(HttpTlsTest, NewConnectionsBeginWithTheNewIdentity) {
  Start();
  TlsClient old(port());
  ASSERT_TRUE(old.Greet());
  const Certificate next = MakeCertificate({"localhost", &ca_});
  // The key does not belong to this certificate.
  identity_.Set({next.pem, own_.key});
  TlsClient same(port());
  ASSERT_TRUE(same.Greet());
  EXPECT_EQ(same.server_certificate(), own_.pem);
  identity_.Set({next.pem, next.key});
  TlsClient changed(port());
  ASSERT_TRUE(changed.Greet());
  EXPECT_EQ(changed.server_certificate(), next.pem);
  old.Send(kGet);
  EXPECT_TRUE(absl::EndsWith(old.ReadAnswer(), "/a 0"));
}

TEST_F(HttpTlsTest, TheWholeChainIsSent) {
  Start();
  identity_.Set({own_.pem + ca_.pem, own_.key});
  TlsClient client(port());
  ASSERT_TRUE(client.Greet());
  EXPECT_EQ(sk_X509_num(SSL_get_peer_cert_chain(client.ssl())), 2);
}

// Only TLS 1.2 has renegotiation.
TEST_F(HttpTlsTest, ThereIsNoRenegotiation) {
  Start();
  TlsClient::Options options;
  options.max_version = TLS1_2_VERSION;
  TlsClient client(port(), options);
  ASSERT_TRUE(client.Greet());
  SSL_renegotiate(client.ssl());
  EXPECT_FALSE(client.Greet());
  EXPECT_TRUE(IsServing());
}

TEST_F(HttpTlsTest, KeysThatChangeAllTheTimeHoldUpNobody) {
  Start();
  TlsClient client(port());
  ASSERT_TRUE(client.Greet());
  for (int i = 0; i < 2000; ++i) {
    SSL_key_update(client.ssl(), SSL_KEY_UPDATE_NOT_REQUESTED);
    if (SSL_do_handshake(client.ssl()) != 1) break;
    EXPECT_TRUE(i % 500 != 0 || IsServing());
  }
  client.Send(kGet);
  EXPECT_TRUE(absl::EndsWith(client.ReadAnswer(), "/a 0"));
}

TEST_F(HttpTlsTest, WhoSaysNothingIsEndedLikeASlowHead) {
  options_.head_time = absl::Milliseconds(300);
  Start();
  RawClient silent(port());
  EXPECT_EQ(silent.ReadAll(), "");
  EXPECT_TRUE(IsServing());
  WaitUntil([this] { return server_->held_bytes() == 0; }, "both ends");
  // The time limit ended the connection before the handshake could fail.
  EXPECT_TRUE(failures().empty());
}

TEST_F(HttpTlsTest, WhoDripsTheHandshakeIsEnded) {
  options_.head_time = absl::Milliseconds(300);
  Start();
  RawClient dripping(port());
  // The first bytes of a ClientHello whose record has 512 bytes.
  std::string hello("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
  hello.append(500, 'r');
  bool is_open = true;
  for (size_t i = 0; i < hello.size() && is_open; ++i) {
    is_open = dripping.Send(hello.substr(i, 1));
    EXPECT_TRUE(i % 20 != 0 || IsServing());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_FALSE(is_open);
}

TEST_F(HttpTlsTest, WhoSpeaksInClearIsToldSo) {
  options_.head_time = absl::Hours(1);
  Start();
  RawClient plain(port());
  plain.Send(kGet);
  const std::string answer = plain.ReadAll();
  EXPECT_TRUE(absl::StartsWith(answer, "HTTP/1.1 400")) << answer;
  EXPECT_TRUE(absl::StrContains(answer, "TLS")) << answer;
  EXPECT_EQ(failures(),
            std::vector<std::string>{"ipv4:127.0.0.1 http request"});
  RawClient garbage(port());
  garbage.Send(std::string(100'000, '\xff'));
  EXPECT_FALSE(absl::StrContains(garbage.ReadAll(), "HTTP"));
  EXPECT_TRUE(IsServing());
  ASSERT_EQ(failures().size(), 2u);
  EXPECT_EQ(failures()[1], "ipv4:127.0.0.1 wrong version number");
}

TEST_F(HttpTlsTest, WhoSendsNoMoreStillReadsItsAnswer) {
  Start();
  for (const bool ends_tls : {true, false}) {
    TlsClient client(port());
    ASSERT_TRUE(client.Greet());
    client.Send(kGet);
    if (ends_tls) client.SayEnd();
    client.CloseSending();
    EXPECT_TRUE(absl::EndsWith(client.ReadAll(), "/a 0")) << ends_tls;
    // If the client closes TCP without a close_notify alert, which ends TLS,
    // OpenSSL does not send this alert either.
    if (!ends_tls) continue;
    EXPECT_EQ(SSL_get_shutdown(client.ssl()) & SSL_RECEIVED_SHUTDOWN,
              SSL_RECEIVED_SHUTDOWN);
  }
}

TEST_F(HttpTlsTest, AnEndOfTlsEndsTheConnection) {
  Start();
  TlsClient client(port());
  ASSERT_TRUE(client.Greet());
  client.Send(kGet);
  client.ReadAnswer();
  client.SayEnd();
  EXPECT_TRUE(client.WaitForEnd());
}

TEST_F(HttpTlsTest, ALastAnswerIsFollowedByTheEndOfTls) {
  Start();
  TlsClient client(port());
  ASSERT_TRUE(client.Greet());
  client.Send("GET /a HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(absl::EndsWith(client.ReadAll(), "/a 0"));
  EXPECT_EQ(SSL_get_shutdown(client.ssl()) & SSL_RECEIVED_SHUTDOWN,
            SSL_RECEIVED_SHUTDOWN);
}

TEST_F(HttpTlsTest, RecordsThatAreForgedEndTheConnection) {
  Start();
  TlsClient client(port());
  ASSERT_TRUE(client.Greet());
  client.SendRaw(std::string("\x17\x03\x03\x00\x20", 5) +
                 std::string(0x20, 'x'));
  EXPECT_TRUE(client.WaitForEnd());
  EXPECT_TRUE(IsServing());
}

TEST_F(HttpTlsTest, AHandshakeIsHeldAgainstTheRoom) {
  Start();
  EXPECT_EQ(server_->held_bytes(), 0);
  {
    TlsClient client(port());
    ASSERT_TRUE(client.Greet());
    EXPECT_GT(server_->held_bytes(), 0);
  }
  WaitUntil([this] { return server_->held_bytes() == 0; }, "its end");
}

TEST_F(HttpTlsTest, HandshakesGiveWayWhenThereAreTooMany) {
  options_.max_connections = 20;
  Start();
  TlsClient greeted(port());
  ASSERT_TRUE(greeted.Greet());
  std::vector<std::unique_ptr<RawClient>> silent;
  for (int i = 0; i < 100; ++i) {
    silent.push_back(std::make_unique<RawClient>(port()));
  }
  EXPECT_TRUE(IsServing());
  greeted.Send(kGet);
  EXPECT_TRUE(absl::EndsWith(greeted.ReadAnswer(), "/a 0"));
}

TEST_F(HttpTlsTest, AThousandHandshakesAtOnceAllSucceed) {
  // All clients connect at once, and the time limit for their handshakes then
  // begins. The last handshake begins after the other handshakes. In a build
  // that checks each memory access, the other handshakes take seconds.
  options_.head_time = absl::Seconds(60);
  Start();
  std::vector<std::unique_ptr<TlsClient>> clients;
  for (int i = 0; i < 1000; ++i) {
    clients.push_back(std::make_unique<TlsClient>(port()));
  }
  std::vector<std::thread> threads;
  std::atomic<int> answered{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = t; i < clients.size(); i += 4) {
        if (!clients[i]->Greet() || !clients[i]->Send(kGet)) continue;
        answered += absl::EndsWith(clients[i]->ReadAnswer(), "/a 0");
      }
    });
  }
  for (std::thread& thread : threads) Join(thread, "the clients");
  EXPECT_EQ(answered, 1000);
}

}  // namespace
}  // namespace sfmamba::http
