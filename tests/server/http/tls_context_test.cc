#include "server/http/tls_context.h"

#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/testing/certificates.h"

namespace sfmamba::http {
namespace {

class TlsContextTest : public testing::Test {
 protected:
  void ExpectRefused(const TlsIdentity& identity, const std::string& part) {
    const auto context = TlsContext::Create(identity);
    EXPECT_EQ(context.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(absl::StartsWith(context.status().message(), part))
        << context.status();
  }

  const Certificate ca_ = MakeCertificate({"ca"});
  const Certificate own_ = MakeCertificate({"localhost", &ca_});
};

TEST_F(TlsContextTest, TakesACertificateItsChainAndItsKey) {
  EXPECT_TRUE(TlsContext::Create({own_.pem, own_.key, ""}).ok());
  const auto context =
      TlsContext::Create({own_.pem + ca_.pem, own_.key, ca_.pem});
  EXPECT_TRUE(context.ok()) << context.status();
  const Certificate rsa = MakeCertificate({"localhost", &ca_, false, true});
  EXPECT_TRUE(TlsContext::Create({rsa.pem, rsa.key, ""}).ok());
}

TEST_F(TlsContextTest, NamesThePartThatIsBad) {
  ExpectRefused({"", own_.key, ""}, "the certificate");
  ExpectRefused({own_.key, own_.key, ""}, "the certificate");
  ExpectRefused({"-----BEGIN CERTIFICATE-----\nAAAA\n", own_.key, ""},
                "the certificate");
  // A chain that is cut off within a certificate.
  ExpectRefused(
      {own_.pem + ca_.pem.substr(0, ca_.pem.size() / 2), own_.key, ""},
      "the certificate");
  ExpectRefused({own_.pem, "", ""}, "the private key");
  ExpectRefused({own_.pem, own_.pem, ""}, "the private key");
  ExpectRefused({own_.pem, own_.key, "x"}, "the clients' CA");
}

TEST_F(TlsContextTest, AKeyOfAnotherCertificateIsRefused) {
  ExpectRefused({own_.pem, ca_.key, ""}, "the private key");
}

TEST_F(TlsContextTest, AKeyWithAPasswordIsRefusedAndNobodyAsked) {
  ExpectRefused(
      {own_.pem,
       "-----BEGIN ENCRYPTED PRIVATE KEY-----\n"
       "MIGjMF8GCSqGSIb3DQEFDTBSMDEGCSqGSIb3DQEFDDAkBBAAAAAAAAAAAAAAAAAA\n"
       "AAAAAgIIADAMBggqhkiG9w0CCQUAMB0GCWCGSAFlAwQBKgQQAAAAAAAAAAAAAAAA\n"
       "AAAAAARAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n"
       "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==\n"
       "-----END ENCRYPTED PRIVATE KEY-----\n",
       ""},
      "the private key");
}

TEST_F(TlsContextTest, ABadChangeIsAnErrorOfTheSameKind) {
  const auto context = TlsContext::Create({own_.pem, own_.key, ""});
  ASSERT_TRUE(context.ok());
  EXPECT_EQ((*context)->Change({own_.pem, ca_.key, ""}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE((*context)->Change({ca_.pem, ca_.key, ""}).ok());
}

}  // namespace
}  // namespace sfmamba::http
