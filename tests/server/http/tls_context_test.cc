#include "server/http/tls_context.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "boost/asio/ssl/context.hpp"
#include "gtest/gtest.h"
#include "openssl/bio.h"
#include "openssl/evp.h"
#include "openssl/pem.h"
#include "openssl/ssl.h"
#include "openssl/x509.h"
#include "server/security/tls_identity.h"
#include "tests/testing/certificates.h"

namespace sfmamba::http {
namespace {

struct Free {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(SSL_SESSION* session) const { SSL_SESSION_free(session); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(BIO* bio) const { BIO_free(bio); }
};
template <typename T>
using Owned = std::unique_ptr<T, Free>;

Owned<BIO> Reader(const std::string& pem) {
  return Owned<BIO>(BIO_new_mem_buf(pem.data(), pem.size()));
}

// Returns a context of clients that send a chain of `length` copies of the
// certificate `own`. Clients use TLS 1.2, in which the handshake contains the
// session ticket.
Owned<SSL_CTX> ClientContext(const Certificate& own, int length = 1) {
  Owned<SSL_CTX> context(SSL_CTX_new(TLS_client_method()));
  SSL_CTX_set_max_proto_version(context.get(), TLS1_2_VERSION);
  const Owned<X509> certificate(
      PEM_read_bio_X509(Reader(own.pem).get(), nullptr, nullptr, nullptr));
  const Owned<EVP_PKEY> key(PEM_read_bio_PrivateKey(Reader(own.key).get(),
                                                    nullptr, nullptr, nullptr));
  SSL_CTX_use_certificate(context.get(), certificate.get());
  SSL_CTX_use_PrivateKey(context.get(), key.get());
  for (int i = 1; i < length; ++i) {
    SSL_CTX_add1_chain_cert(context.get(), certificate.get());
  }
  return context;
}

// Makes a handshake in memory. Returns true if both sides succeed.
bool Greet(SSL* client, SSL* server) {
  BIO *of_client, *of_server;
  BIO_new_bio_pair(&of_client, 0, &of_server, 0);
  SSL_set_bio(client, of_client, of_client);
  SSL_set_bio(server, of_server, of_server);
  SSL_set_connect_state(client);
  SSL_set_accept_state(server);
  for (int turn = 0; turn < 100; ++turn) {
    const bool client_is_done = SSL_do_handshake(client) == 1;
    if (SSL_do_handshake(server) == 1 && client_is_done) return true;
  }
  return false;
}

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

  // Returns a context that requires clients to have a certificate signed by
  // `ca_`.
  std::unique_ptr<TlsContext> AskingForCertificates() {
    identity_.Set({own_.pem, own_.key, ca_.pem});
    return *TlsContext::Create({&identity_});
  }
  static Owned<SSL> Server(TlsContext& tls) {
    return Owned<SSL>(SSL_new(tls.Current().native_handle()));
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

// The ticket contains the session, so the server stores no session.
TEST_F(TlsContextTest, ASessionIsResumedByATicketAlone) {
  const auto tls = AskingForCertificates();
  const Owned<SSL_CTX> clients =
      ClientContext(MakeCertificate({"client", &ca_}));
  for (const bool takes_tickets : {true, false}) {
    if (!takes_tickets) SSL_CTX_set_options(clients.get(), SSL_OP_NO_TICKET);
    const Owned<SSL> first(SSL_new(clients.get())), server = Server(*tls);
    ASSERT_TRUE(Greet(first.get(), server.get()));
    const Owned<SSL_SESSION> session(SSL_get1_session(first.get()));
    const Owned<SSL> second(SSL_new(clients.get())), next = Server(*tls);
    SSL_set_session(second.get(), session.get());
    ASSERT_TRUE(Greet(second.get(), next.get()));
    EXPECT_EQ(SSL_session_reused(next.get()) == 1, takes_tickets);
  }
}

// The test lowers OpenSSL's security level to 0. At the default level, OpenSSL
// would refuse TLS 1.1 even if the context allowed it.
TEST_F(TlsContextTest, OldVersionsAreRefusedAtAnySecurityLevel) {
  identity_.Set({own_.pem, own_.key, ""});
  const auto tls = TlsContext::Create({&identity_});
  ASSERT_TRUE(tls.ok()) << tls.status();
  const Owned<SSL_CTX> clients(SSL_CTX_new(TLS_client_method()));
  SSL_CTX_set_min_proto_version(clients.get(), TLS1_1_VERSION);
  for (const int version : {TLS1_1_VERSION, TLS1_2_VERSION}) {
    SSL_CTX_set_max_proto_version(clients.get(), version);
    const Owned<SSL> client(SSL_new(clients.get())), server = Server(**tls);
    SSL_set_security_level(client.get(), 0);
    SSL_set_security_level(server.get(), 0);
    EXPECT_EQ(Greet(client.get(), server.get()), version == TLS1_2_VERSION);
  }
}

TEST_F(TlsContextTest, ClientsShowFewCertificates) {
  const auto tls = AskingForCertificates();
  const Certificate own = MakeCertificate({"client", &ca_});
  for (const int length : {10, 150}) {
    const Owned<SSL_CTX> clients = ClientContext(own, length);
    const Owned<SSL> client(SSL_new(clients.get())), server = Server(*tls);
    EXPECT_EQ(Greet(client.get(), server.get()), length == 10) << length;
  }
}

TEST_F(TlsContextTest, NamesTheSettingThatIsWrong) {
  ExpectRefused({"", own_.key, ""}, "tls_cert_file");
  ExpectRefused({own_.key, own_.key, ""}, "tls_cert_file");
  ExpectRefused({"-----BEGIN CERTIFICATE-----\nAAAA\n", own_.key, ""},
                "tls_cert_file");
  // The second half of the chain's second certificate is missing.
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
