#include "server/http/tls_context.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "boost/asio/ssl/context.hpp"
#include "gtest/gtest.h"
#include "openssl/ssl.h"
#include "server/security/tls_identity.h"
#include "tests/testing/certificates.h"

namespace sfmamba::http {
namespace {

class TlsContextTest : public testing::Test {
 protected:
  absl::Status Create(security::TlsIdentity identity) {
    identity_.Set(std::move(identity));
    return TlsContext::Create({&identity_}).status();
  }
  void ExpectRefused(const security::TlsIdentity& identity,
                     const std::string& setting) {
    const absl::Status status = Create(identity);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(absl::StartsWith(status.message(), setting)) << status;
  }

  security::CurrentTlsIdentity identity_;
  const Certificate ca_ = MakeCertificate({"ca"});
  const Certificate own_ = MakeCertificate({"localhost", &ca_});
};

TEST_F(TlsContextTest, TakesACertificateItsChainAndItsKey) {
  EXPECT_TRUE(Create({own_.pem, own_.key}).ok());
  EXPECT_TRUE(Create({own_.pem + ca_.pem, own_.key, ca_.pem}).ok());
  const Certificate rsa = MakeCertificate({"localhost", &ca_, false, true});
  EXPECT_TRUE(Create({rsa.pem, rsa.key}).ok());
}

TEST_F(TlsContextTest, TellsClientsWhichCasItTakes) {
  const Certificate other = MakeCertificate({"other"});
  for (const std::string& cas : {ca_.pem, ca_.pem + other.pem}) {
    identity_.Set({own_.pem, own_.key, cas});
    const auto tls = TlsContext::Create({&identity_});
    ASSERT_TRUE(tls.ok()) << tls.status();
    const STACK_OF(X509_NAME)* const names =
        SSL_CTX_get_client_CA_list((*tls)->Current().native_handle());
    EXPECT_EQ(sk_X509_NAME_num(names), cas == ca_.pem ? 1 : 2);
  }
}

TEST_F(TlsContextTest, NamesTheSettingThatIsWrong) {
  ExpectRefused({"", own_.key, ""}, "tls_cert_file");
  ExpectRefused({own_.key, own_.key, ""}, "tls_cert_file");
  ExpectRefused({"-----BEGIN CERTIFICATE-----\nAAAA\n", own_.key, ""},
                "tls_cert_file");
  // A chain that is cut off within a certificate.
  ExpectRefused(
      {own_.pem + ca_.pem.substr(0, ca_.pem.size() / 2), own_.key, ""},
      "tls_cert_file");
  ExpectRefused({own_.pem, "", ""}, "tls_key_file");
  ExpectRefused({own_.pem, own_.pem, ""}, "tls_key_file");
  ExpectRefused({own_.pem, own_.key, "x"}, "tls_client_ca_file");
  ExpectRefused({own_.pem, own_.key,
                 "-----BEGIN CERTIFICATE-----\n"
                 "Proc-Type: 4,ENCRYPTED\n"},
                "tls_client_ca_file");
}

TEST_F(TlsContextTest, AKeyOfAnotherCertificateIsRefused) {
  ExpectRefused({own_.pem, ca_.key, ""}, "tls_key_file");
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
      "tls_key_file");
}

}  // namespace
}  // namespace sfmamba::http
