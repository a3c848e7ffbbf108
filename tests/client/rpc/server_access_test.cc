#include "client/rpc/server_access.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/testing/certificates.h"

namespace sfmamba::client {
namespace {

void ExpectWrong(const std::string& server, const AccessOptions& options,
                 const std::string& flag) {
  const absl::Status status = OpenAccess(server, options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << flag;
  EXPECT_TRUE(absl::StartsWith(status.message(), flag + ":")) << status;
}

TEST(ServerAccessTest, NothingIsNeededForAnOpenServer) {
  const auto access = OpenAccess("example.com:8001", {});
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_FALSE(access->tls);
  EXPECT_EQ(access->token, "");
}

TEST(ServerAccessTest, FileOfTheTokenWinsAndIsTrimmed) {
  AccessOptions options;
  options.token = "environment";
  EXPECT_EQ(OpenAccess("127.0.0.1:1", options)->token, "environment");
  options.token_file = WriteTestFile("token", "  file\n");
  EXPECT_EQ(OpenAccess("127.0.0.1:1", options)->token, "file");
}

TEST(ServerAccessTest, TokenIsNotSentInPlaintextToOtherMachines) {
  AccessOptions options;
  options.token = "secret";
  for (const char* near :
       {"127.0.0.1:8001", "localhost:8001", "[::1]:8001", "127.9.9.9:1"}) {
    EXPECT_TRUE(OpenAccess(near, options).ok()) << near;
  }
  for (const char* far :
       {"10.0.0.7:8001", "example.com:8001", "[::2]:8001",
        "localhost.example.com:1", "12.7.0.0:1", "127.0.0.1.example.com:1",
        "ipv4:127.0.0.1:1,10.0.0.7:1"}) {
    ExpectWrong(far, options, "--tls");
    EXPECT_FALSE(absl::StrContains(OpenAccess(far, options).status().ToString(),
                                   "secret"));
  }
  options.plaintext_token = true;
  EXPECT_TRUE(OpenAccess("10.0.0.7:8001", options).ok());
  options.plaintext_token = false;
  options.tls = true;
  EXPECT_TRUE(OpenAccess("10.0.0.7:8001", options).ok());
}

TEST(ServerAccessTest, AServerIsHostAndPort) {
  for (const char* good :
       {"host:1", "host.example.org:65535", "127.0.0.1:8001", "[::1]:8001",
        "ipv4:127.0.0.1:1,127.0.0.1:2", "ipv6:[::1]:1", "dns:///host:1"}) {
    EXPECT_TRUE(OpenAccess(good, {}).ok()) << good;
  }
  for (const char* bad : {"", "host", ":1", "host:", "host:0", "host:65536",
                          "host:http", "::1", "host:1/v1", "1.2.3.4", "[::1]",
                          "http://host:1", "https://host", "grpc://host:1"}) {
    ExpectWrong(bad, {}, "--server");
  }
  EXPECT_EQ(OpenAccess("http://host:1", {}).status().message(),
            "--server: got 'http://host:1', expected HOST:PORT without "
            "http://");
  EXPECT_EQ(OpenAccess("https://host:1", {}).status().message(),
            "--server: got 'https://host:1', expected HOST:PORT without "
            "https://, and --tls");
  EXPECT_EQ(OpenAccess("host", {}).status().message(),
            "--server: got 'host', expected HOST:PORT, such as "
            "127.0.0.1:8001");
}

TEST(ServerAccessTest, ErrorNamesTheFlag) {
  AccessOptions options;
  options.token = "two words";
  ExpectWrong("127.0.0.1:1", options, "--token_file");
  options = {};
  options.token_file = "/nowhere";
  ExpectWrong("127.0.0.1:1", options, "--token_file");
  options = {};
  options.tls = true;
  options.ca_file = "/nowhere";
  ExpectWrong("127.0.0.1:1", options, "--tls_ca");
  options = {};
  options.tls = true;
  options.cert_file = WriteTestFile("cert", "x");
  ExpectWrong("127.0.0.1:1", options, "--tls_cert");
  options = {};
  options.ca_file = WriteTestFile("ca", "x");
  ExpectWrong("127.0.0.1:1", options, "--tls_ca");
  options = {};
  options.server_name = "x";
  ExpectWrong("127.0.0.1:1", options, "--tls_server_name");
}

TEST(ServerAccessTest, AKeyOfAnotherCertificateIsRefusedByName) {
  const Certificate mine = MakeCertificate(), other = MakeCertificate();
  AccessOptions options;
  options.tls = true;
  options.cert_file = WriteTestFile("mine.pem", mine.pem);
  options.key_file = WriteTestFile("mine.key", mine.key);
  const auto access = OpenAccess("127.0.0.1:1", options);
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_EQ(access->private_key, mine.key);
  options.key_file = WriteTestFile("other.key", other.key);
  EXPECT_EQ(OpenAccess("127.0.0.1:1", options).status().message(),
            "--tls_key: got '" + options.key_file +
                "', which is of another certificate, expected the key of "
                "--tls_cert, '" +
                options.cert_file + "'");
  options.key_file = options.cert_file;
  ExpectWrong("127.0.0.1:1", options, "--tls_key");
  options.cert_file = WriteTestFile("none.pem", "x");
  ExpectWrong("127.0.0.1:1", options, "--tls_cert");
}

}  // namespace
}  // namespace sfmamba::client
