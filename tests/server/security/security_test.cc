#include "server/security/security.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "server/server_config.h"
#include "tests/server/security/token_texts.h"
#include "tests/testing/certificates.h"
#include "tests/testing/patience.h"

namespace sfmamba::security {
namespace {

class SecurityTest : public testing::Test {
 protected:
  SecurityTest() {
    const auto folder =
        std::filesystem::path(testing::TempDir()) /
        testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder);
    folder_ = folder.string() + "/";
  }

  Security::Events Events() {
    Security::Events events;
    events.refused = [this](absl::string_view) { ++refused_; };
    events.reloaded = [this](absl::string_view what, const absl::Status& s) {
      absl::MutexLock lock(&mu_);
      ++(s.ok() ? taken_ : kept_)[std::string(what)];
    };
    events.certificate_expires = [this](absl::Time time) {
      absl::MutexLock lock(&mu_);
      expires_ = time;
    };
    return events;
  }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + name) << text;
  }
  void WritePair(const Certificate& pair) const {
    Write("cert", pair.pem);
    Write("key", pair.key);
  }
  v1::ServerConfig Config() const {
    v1::ServerConfig config;
    config.set_token_file(folder_ + "tokens");
    config.set_tls_cert_file(folder_ + "cert");
    config.set_tls_key_file(folder_ + "key");
    return server::WithDefaults(config);
  }
  int Count(const std::map<std::string, int>& counts, const std::string& what)
      ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    const auto found = counts.find(what);
    return found == counts.end() ? 0 : found->second;
  }

  std::string folder_;
  std::atomic<int> refused_{0};
  absl::Mutex mu_;
  std::map<std::string, int> taken_, kept_;
  absl::Time expires_;
};

TEST_F(SecurityTest, ATrustedProxyIsANetwork) {
  v1::ServerConfig config;
  config.add_trusted_proxies("10.0.0.0/8");
  Security good(config, Events());
  ASSERT_EQ(good.Open(), absl::OkStatus());
  const auto caller =
      good.gate().Check("", {"ipv4:10.0.0.7:1", {"9.9.9.9"}}, Scope::kInfer);
  ASSERT_TRUE(caller.ok());
  EXPECT_EQ(caller->name, "ipv4:9.9.9.9");
  config.add_trusted_proxies("proxy");
  const absl::Status status = Security(config, Events()).Open();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(
      absl::StrContains(status.message(), "trusted_proxies: got \"proxy\""))
      << status;
}

TEST_F(SecurityTest, NoSettingsGuardNothing) {
  Security security(server::WithDefaults({}), Events());
  ASSERT_TRUE(security.Open().ok());
  EXPECT_TRUE(
      security.gate().Check("", {"ipv4:10.0.0.7:1", {}}, Scope::kInfer).ok());
  EXPECT_EQ(security.tls(), nullptr);
}

TEST_F(SecurityTest, WithoutTokensAllHaveTheSettingsQuota) {
  v1::ServerConfig config;
  config.set_max_client_items(7);
  config.set_client_items_per_second(2.5);
  config.set_client_burst(5);
  Security security(server::WithDefaults(config), Events());
  ASSERT_TRUE(security.Open().ok());
  const auto caller =
      security.gate().Check("", {"ipv4:10.0.0.7:1", {}}, Scope::kInfer);
  ASSERT_TRUE(caller.ok());
  EXPECT_EQ(caller->quota.max_items, 7);
  EXPECT_EQ(caller->quota.items_per_second, 2.5);
  EXPECT_EQ(caller->quota.burst, 5);
}

TEST_F(SecurityTest, ClientsMayBeSignedByAnAuthority) {
  WritePair(MakeCertificate());
  Write("tokens", ClientText("a", "one", "INFER"));
  const Certificate authority = MakeCertificate();
  Write("ca", authority.pem);
  v1::ServerConfig config = Config();
  config.set_tls_client_ca_file(folder_ + "ca");
  Security security(config, Events());
  ASSERT_TRUE(security.Open().ok());
  EXPECT_EQ(security.tls()->Get()->client_ca, authority.pem);
}

TEST_F(SecurityTest, ErrorOfAStartNamesTheFileOrTheField) {
  const Certificate pair = MakeCertificate();
  WritePair(pair);
  EXPECT_TRUE(absl::StrContains(Security(Config(), Events()).Open().message(),
                                folder_ + "tokens"));
  Write("tokens", "client { name: 'a' }");
  const absl::Status status = Security(Config(), Events()).Open();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), "client[0]")) << status;
  Write("tokens", ClientText("a", "one", "INFER"));
  Write("key", MakeCertificate().key);
  EXPECT_TRUE(absl::StrContains(Security(Config(), Events()).Open().message(),
                                "tls_key_file"));
}

TEST_F(SecurityTest, AFileMayHaveAMebibyte) {
  v1::ServerConfig config;
  config.set_token_file(folder_ + "tokens");
  config = server::WithDefaults(config);
  std::string text = ClientText("a", "one", "INFER");
  text.append((1 << 20) - text.size(), '\n');
  Write("tokens", text);
  EXPECT_EQ(Security(config, Events()).Open(), absl::OkStatus());
  Write("tokens", text + "\n");
  EXPECT_TRUE(absl::StrContains(Security(config, Events()).Open().message(),
                                "got more than 1048576 bytes"));
}

// The server reads the file once a second. If it opened a pipe like a file, it
// would wait for a writer.
TEST_F(SecurityTest, APipeInAFilesPlaceHoldsNothingUp) {
  WritePair(MakeCertificate());
  const std::string path = folder_ + "tokens";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  TimeLimit limit("the refusal and the next look");
  EXPECT_TRUE(absl::StrContains(Security(Config(), Events()).Open().message(),
                                path + ": got a pipe"));
  std::filesystem::remove(path);
  Write("tokens", ClientText("a", "one", "INFER"));
  Security security(Config(), Events());
  ASSERT_TRUE(security.Open().ok());
  Write("key", MakeCertificate().key);
  ASSERT_EQ(unlink(path.c_str()), 0);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  WaitUntil([&] { return Count(kept_, "tokens") == 1; }, "the pipe's refusal");
  WaitUntil([&] { return Count(kept_, "tls") == 1; }, "the wrong key");
}

TEST_F(SecurityTest, FilesThatChangeAreTakenAndBadOnesAreNot) {
  WritePair(MakeCertificate());
  Write("tokens", ClientText("a", "one", "INFER"));
  Security security(Config(), Events());
  ASSERT_TRUE(security.Open().ok());
  const auto check = [&security](const std::string& token) {
    return security.gate()
        .Check("Bearer " + token, {"ipv4:10.0.0.7:1", {}}, Scope::kInfer)
        .ok();
  };
  EXPECT_TRUE(check("one"));
  EXPECT_EQ(security.gate()
                .Check("Bearer one", {"ipv4:10.0.0.7:1", {}}, Scope::kInfer)
                ->quota.max_items,
            256);
  const auto identity = security.tls()->Get();
  ASSERT_NE(identity, nullptr);

  Write("tokens", ClientText("a", "two", "INFER"));
  WaitUntil([&] { return Count(taken_, "tokens") == 1; }, "the new tokens");
  EXPECT_TRUE(check("two"));
  EXPECT_EQ(refused_, 0);
  EXPECT_FALSE(check("one"));
  EXPECT_EQ(refused_, 1);
  Write("tokens", "junk");
  const Certificate renewed = MakeCertificate();
  WritePair(renewed);
  WaitUntil([&] { return Count(kept_, "tokens") == 1; }, "the bad tokens");
  EXPECT_TRUE(check("two"));
  WaitUntil([&] { return Count(taken_, "tls") == 1; }, "the new certificate");
  EXPECT_EQ(security.tls()->Get()->private_key, renewed.key);
  {
    absl::MutexLock lock(&mu_);
    EXPECT_GT(expires_, absl::Now() + absl::Hours(23));
  }
  Write("key", MakeCertificate().key);
  WaitUntil([&] { return Count(kept_, "tls") == 1; }, "the wrong key");
  EXPECT_EQ(security.tls()->Get()->private_key, renewed.key);
}

}  // namespace
}  // namespace sfmamba::security
