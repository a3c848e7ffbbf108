// Tests a server with TLS: which clients it accepts, how certificate changes
// affect callers, and how it handles many connections.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/e2e/security/security_fixture.h"

namespace sfmamba {
namespace {

using TlsTest = SecurityTest;

TEST_F(TlsTest, OnlyClientsWithAGoodCertificateAreServed) {
  auto flags = TlsFlags(Issue(), /*client_ca=*/true);
  flags.push_back("--health_port=0");
  Start(flags);
  EXPECT_TRUE(Classify(Connect(true, Issue()), "").ok());
  EXPECT_EQ(Sum("sfmamba_tls_handshake_failures_total", {}), 0);
  const auto expect_unavailable = [this](const grpc::Status& status) {
    EXPECT_REFUSED(status, UNAVAILABLE, "");
  };
  expect_unavailable(Classify(Connect(true), ""));
  expect_unavailable(Classify(Connect(true, Issue(/*expired=*/true)), ""));
  expect_unavailable(Classify(Connect(true, MakeCertificate()), ""));
  EXPECT_GE(Sum("sfmamba_tls_handshake_failures_total", {}), 3);
  expect_unavailable(Classify(Connect(/*tls=*/false), ""));
  EXPECT_TRUE(Classify(Connect(true, Issue()), "").ok());
  EXPECT_GT(Sum("sfmamba_tls_certificate_expiry_timestamp_seconds", {}),
            absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch()));

  const std::string log = server_->output();
  const std::string key = "\"health_port\":";
  const size_t begin = log.find(key) + key.size();
  const std::string port =
      log.substr(begin, log.find_first_of(",}", begin) - begin);
  const auto health = grpc::CreateChannel(absl::StrCat("127.0.0.1:", port),
                                          grpc::InsecureChannelCredentials());
  EXPECT_TRUE(Health(health).ok());
  EXPECT_REFUSED(Classify(health, ""), UNIMPLEMENTED, "");
  server_->Signal(SIGTERM);
  EXPECT_EQ(server_->Wait(), 0) << server_->output();
}

TEST_F(TlsTest, KeyOfAnotherCertificateKeepsTheOldPair) {
  Start(TlsFlags(Issue(), /*client_ca=*/false));
  Write("key", Issue().key);
  WaitForReloads("tls", "kept_old", 1);
  EXPECT_TRUE(Classify(Connect(true), "").ok());
}

TEST_F(TlsTest, NewConnectionsGetTheNewCertificate) {
  Start(TlsFlags(Issue(), /*client_ca=*/false));
  EXPECT_TRUE(Classify(Connect(true), "").ok());
  const Certificate other = MakeCertificate();
  const Certificate renewed = MakeCertificate({"localhost", &other});
  Write("cert", renewed.pem);
  Write("key", renewed.key);
  WaitForReloads("tls", "taken", 1);
  // The test's clients trust only the authority that signed the first
  // certificate.
  EXPECT_EQ(Classify(Connect(true), "").error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

TEST_F(TlsTest, AnExpiredCertificateIsTakenAndTheLogSaysSo) {
  Start(TlsFlags(Issue(), /*client_ca=*/false));
  const Certificate expired = Issue(/*expired=*/true);
  Write("cert", expired.pem);
  Write("key", expired.key);
  WaitForReloads("tls", "taken", 1);
  EXPECT_EQ(Classify(Connect(true), "").error_code(),
            grpc::StatusCode::UNAVAILABLE);
  server_->Signal(SIGTERM);
  EXPECT_EQ(server_->Wait(), 0);
  EXPECT_NE(server_->output().find("the certificate has expired"),
            std::string::npos)
      << server_->output();
}

// Each call of each thread uses a separate connection.
TEST_F(TlsTest, NoCallFailsWhileCertificatesAndTokensChange) {
  auto flags = TlsFlags(Issue(), /*client_ca=*/false);
  const std::string keep = ClientText("keeper", "keep", "INFER");
  flags.push_back(TokenFlag(keep));
  Start(flags);
  std::atomic<bool> stop{false};
  std::atomic<int> calls{0}, failures{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      const auto kept = Connect(true);
      while (!stop) {
        const grpc::Status status =
            Classify(i == 0 ? kept : Connect(true), "keep");
        ++calls;
        if (status.ok()) continue;
        ++failures;
        ADD_FAILURE() << status.error_message();
      }
    });
  }
  for (int i = 1; i <= 3; ++i) {
    const Certificate renewed = Issue();
    Write("cert", renewed.pem);
    Write("key", renewed.key);
    Write("tokens", keep + ClientText("guest", absl::StrCat("g", i), "INFER"));
    WaitForReloads("tls", "taken", i);
    WaitForReloads("tokens", "taken", i);
    EXPECT_TRUE(Classify(Connect(true), absl::StrCat("g", i)).ok());
    EXPECT_FALSE(Classify(Connect(true), absl::StrCat("g", i - 1)).ok());
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_GT(calls, 20);
}

// Opens connections and sends nothing on them.
class SilentConnections {
 public:
  SilentConnections(int port, int count) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < count; ++i) {
      const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      EXPECT_EQ(
          connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)),
          0);
      fds_.push_back(fd);
    }
  }
  ~SilentConnections() {
    for (int fd : fds_) close(fd);
  }

 private:
  std::vector<int> fds_;
};

TEST_F(TlsTest, SilentHandshakesBlockNobody) {
  Start(TlsFlags(Issue(), /*client_ca=*/false));
  const SilentConnections silent(server_->port(), 800);
  const absl::Time start = absl::Now();
  EXPECT_TRUE(Classify(Connect(true), "").ok());
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
}

TEST_F(TlsTest, ConnectionsAreLimitedWithTlsToo) {
  auto flags = TlsFlags(Issue(), /*client_ca=*/false);
  flags.push_back("--max_connections=20");
  Start(flags);
  const SilentConnections silent(server_->port(), 200);
  EXPECT_TRUE(Classify(Connect(true), "").ok());
  EXPECT_GE(Sum("sfmamba_connections_refused_total", {R"(port="grpc")"}), 180);
}

TEST_F(TlsTest, AThousandHandshakesAtOnceAllEnd) {
  Start(TlsFlags(Issue(), /*client_ca=*/true));
  const Certificate own = Issue();
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 20; ++i) {
    threads.emplace_back([&] {
      std::vector<std::shared_ptr<grpc::Channel>> channels;
      for (int k = 0; k < 50; ++k) {
        channels.push_back(Connect(true, own));
        channels.back()->GetState(/*try_to_connect=*/true);
      }
      for (const auto& channel : channels) {
        if (Health(channel).ok()) ++good;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 1000);
  EXPECT_EQ(Sum("sfmamba_tls_handshake_failures_total", {}), 0);
}

}  // namespace
}  // namespace sfmamba
