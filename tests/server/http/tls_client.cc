#include "tests/server/http/tls_client.h"

#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/socket.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/testing/patience.h"

namespace sfmamba::http {
namespace {

BIO* Reader(const std::string& pem) {
  return BIO_new_mem_buf(pem.data(), pem.size());
}

}  // namespace

TlsClient::TlsClient(int port, const Options& options)
    : LocalConnection(port, options.receive_buffer),
      context_(SSL_CTX_new(TLS_client_method())),
      ssl_([&] {
        SSL_CTX* context = context_.get();
        // The client also allows old versions, because the server must refuse
        // them.
        SSL_CTX_set_security_level(context, 0);
        SSL_CTX_set_min_proto_version(context, options.min_version);
        SSL_CTX_set_max_proto_version(context, options.max_version);
        if (!options.ca.empty()) {
          BIO* bio = Reader(options.ca);
          X509* ca = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
          X509_STORE_add_cert(SSL_CTX_get_cert_store(context), ca);
          X509_free(ca);
          BIO_free(bio);
          SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
        }
        if (options.certificate != nullptr) {
          BIO* bio = Reader(options.certificate->pem);
          X509* own = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
          EXPECT_EQ(SSL_CTX_use_certificate(context, own), 1);
          X509_free(own);
          BIO_free(bio);
          bio = Reader(options.certificate->key);
          EVP_PKEY* key =
              PEM_read_bio_PrivateKey(bio, nullptr, nullptr, nullptr);
          EXPECT_EQ(SSL_CTX_use_PrivateKey(context, key), 1);
          EVP_PKEY_free(key);
          BIO_free(bio);
        }
        if (!options.protocols.empty()) {
          SSL_CTX_set_alpn_protos(
              context,
              reinterpret_cast<const unsigned char*>(options.protocols.data()),
              options.protocols.size());
        }
        return SSL_new(context);
      }()) {
  SSL_set_fd(ssl_.get(), fd());
  if (options.session != nullptr) {
    SSL_set_session(ssl_.get(), options.session);
  }
}

bool TlsClient::Greet() {
  TimeLimit limit("a handshake of TLS");
  ERR_clear_error();
  if (SSL_connect(ssl_.get()) == 1) return true;
  char text[256] = "";
  ERR_error_string_n(ERR_peek_error(), text, sizeof(text));
  error_ = text;
  return false;
}

void TlsClient::Start() {
  fcntl(fd(), F_SETFL, fcntl(fd(), F_GETFL) | O_NONBLOCK);
  ERR_clear_error();
  SSL_connect(ssl_.get());
}

bool TlsClient::Send(const std::string& text) {
  TimeLimit limit("the server to read");
  ERR_clear_error();
  return SSL_write(ssl_.get(), text.data(), text.size()) ==
         static_cast<int>(text.size());
}

ssize_t TlsClient::Read(char* bytes, size_t size) {
  ERR_clear_error();
  const int n = SSL_read(ssl_.get(), bytes, size);
  if (n <= 0) {
    char text[256] = "";
    ERR_error_string_n(ERR_peek_error(), text, sizeof(text));
    error_ = text;
  }
  return n;
}

bool TlsClient::WaitForEnd() {
  TimeLimit limit("the end of the connection");
  char bytes[4096];
  while (recv(fd(), bytes, sizeof(bytes), 0) > 0) {
  }
  return true;
}

void TlsClient::SayEnd() { SSL_shutdown(ssl_.get()); }

std::string TlsClient::server_certificate() const {
  X509* certificate = SSL_get1_peer_certificate(ssl_.get());
  if (certificate == nullptr) return "";
  BIO* bio = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(bio, certificate);
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio, &bytes);
  const std::string pem(bytes, size);
  BIO_free(bio);
  X509_free(certificate);
  return pem;
}

std::string TlsGet(int port, const std::string& path) {
  TlsClient client(port);
  if (!client.Greet()) return "";
  client.Send(absl::StrCat("GET ", path,
                           " HTTP/1.1\r\nHost: localhost\r\n"
                           "Connection: close\r\n\r\n"));
  const std::string answer = client.ReadAnswer();
  if (!absl::StartsWith(answer, "HTTP/1.1 200")) return "";
  return answer.substr(answer.find("\r\n\r\n") + 4);
}

}  // namespace sfmamba::http
