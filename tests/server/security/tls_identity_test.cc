#include "server/security/tls_identity.h"

#include <openssl/err.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/testing/certificates.h"

namespace sfmamba::security {
namespace {

void ExpectWrong(const absl::StatusOr<TlsIdentity>& identity,
                 const std::string& setting) {
  EXPECT_EQ(identity.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StartsWith(identity.status().message(), setting))
      << identity.status();
  EXPECT_EQ(ERR_peek_error(), 0u) << "another user would take it for its own";
}

class TlsIdentityTest : public testing::Test {
 protected:
  // Returns a certificate signed by the authority.
  Certificate Issue(bool expired = false) const {
    CertificateOptions options;
    options.issuer = &authority_;
    options.expired = expired;
    return MakeCertificate(options);
  }
  // Expects the server's own certificate, which is valid for a day.
  static void ExpectOwn(const TlsIdentity& identity) {
    EXPECT_GT(identity.expires, absl::Now() + absl::Hours(23));
    EXPECT_LT(identity.expires, absl::Now() + absl::Hours(25));
  }

  const Certificate authority_ = MakeCertificate();
  const Certificate server_ = Issue();
};

TEST_F(TlsIdentityTest, TakesACertificateAndItsKey) {
  const auto identity =
      MakeTlsIdentity(server_.pem, server_.key, authority_.pem);
  ASSERT_TRUE(identity.ok()) << identity.status();
  ExpectOwn(*identity);
  EXPECT_EQ(identity->private_key, server_.key);
}

TEST_F(TlsIdentityTest, TheServersOwnCertificateIsTheFirstOfTheChain) {
  const auto identity =
      MakeTlsIdentity(server_.pem + authority_.pem, server_.key, "");
  ASSERT_TRUE(identity.ok()) << identity.status();
  ExpectOwn(*identity);
  ExpectWrong(MakeTlsIdentity(authority_.pem + server_.pem, server_.key, ""),
              "tls_key_file");
}

TEST_F(TlsIdentityTest, ExpiredCertificateIsTaken) {
  const Certificate old = Issue(/*expired=*/true);
  const auto identity = MakeTlsIdentity(old.pem, old.key, "");
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_LT(identity->expires, absl::Now());
}

TEST_F(TlsIdentityTest, ErrorNamesTheSetting) {
  const Certificate other = Issue();
  ExpectWrong(MakeTlsIdentity(server_.pem, other.key, ""), "tls_key_file");
  ExpectWrong(MakeTlsIdentity(server_.pem, "", ""), "tls_key_file");
  ExpectWrong(MakeTlsIdentity(server_.pem, server_.pem, ""), "tls_key_file");
  ExpectWrong(MakeTlsIdentity("", server_.key, ""), "tls_cert_file");
  ExpectWrong(MakeTlsIdentity("junk", server_.key, ""), "tls_cert_file");
  ExpectWrong(MakeTlsIdentity(server_.key, server_.key, ""), "tls_cert_file");
  ExpectWrong(MakeTlsIdentity(server_.pem, server_.key, "junk"),
              "tls_client_ca_file");
}

TEST_F(TlsIdentityTest, TruncatedFilesAreErrors) {
  for (const double part : {0.1, 0.5, 0.9}) {
    const auto cut = [part](const std::string& text) {
      return text.substr(0, static_cast<size_t>(part * text.size()));
    };
    ExpectWrong(MakeTlsIdentity(cut(server_.pem), server_.key, ""),
                "tls_cert_file");
    ExpectWrong(MakeTlsIdentity(server_.pem, cut(server_.key), ""),
                "tls_key_file");
    ExpectWrong(
        MakeTlsIdentity(server_.pem + cut(authority_.pem), server_.key, ""),
        "tls_cert_file");
  }
}

}  // namespace
}  // namespace sfmamba::security
