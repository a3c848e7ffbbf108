#include "server/http/tls_context.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <string>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/http/tls_socket.h"

namespace sfmamba::http {
namespace {

// Of the certificates that a client shows, in all.
constexpr long kMaxClientCertificates = 32 << 10;
constexpr unsigned char kHttp11[] = "\x08http/1.1";
constexpr unsigned char kSessions[] = "sfmamba";

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
template <typename T>
using Owned = std::unique_ptr<T, Free>;

Owned<BIO> Reader(const std::string& pem) {
  return Owned<BIO>(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

// The library's reason for its last error, for people.
absl::Status Bad(absl::string_view what, absl::string_view expected) {
  char reason[256] = "no reason given";
  const unsigned long error = ERR_peek_last_error();
  if (error != 0) ERR_error_string_n(error, reason, sizeof(reason));
  ERR_clear_error();
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": expected ", expected, ", got ", reason));
}

// A key with a password is an error, never a question on the terminal.
int NoPassword(char*, int, int, void*) { return -1; }

bool UseCertificates(const std::string& pem, SSL_CTX* context) {
  const Owned<BIO> bio = Reader(pem);
  const Owned<X509> own(
      PEM_read_bio_X509(bio.get(), nullptr, NoPassword, nullptr));
  if (own == nullptr || SSL_CTX_use_certificate(context, own.get()) != 1) {
    return false;
  }
  while (X509* next =
             PEM_read_bio_X509(bio.get(), nullptr, NoPassword, nullptr)) {
    // Takes the certificate over if it succeeds.
    if (SSL_CTX_add0_chain_cert(context, next) != 1) {
      X509_free(next);
      return false;
    }
  }
  // That there are no more is an error to the reader of PEM, and none here.
  const bool is_end =
      ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  if (is_end) ERR_clear_error();
  return is_end;
}

bool UseKey(const std::string& pem, SSL_CTX* context) {
  const Owned<EVP_PKEY> key(
      PEM_read_bio_PrivateKey(Reader(pem).get(), nullptr, NoPassword, nullptr));
  return key != nullptr && SSL_CTX_use_PrivateKey(context, key.get()) == 1;
}

bool AskForClients(const std::string& pem, bool is_optional, SSL_CTX* context) {
  const Owned<BIO> bio = Reader(pem);
  int count = 0;
  while (const Owned<X509> ca = Owned<X509>(
             PEM_read_bio_X509(bio.get(), nullptr, NoPassword, nullptr))) {
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context), ca.get()) != 1 ||
        SSL_CTX_add_client_CA(context, ca.get()) != 1) {
      return false;
    }
    ++count;
  }
  if (count == 0) return false;
  ERR_clear_error();
  SSL_CTX_set_verify(
      context,
      SSL_VERIFY_PEER | (is_optional ? 0 : SSL_VERIFY_FAIL_IF_NO_PEER_CERT),
      nullptr);
  return true;
}

// A client that names other protocols only, such as HTTP/2, is refused.
int ChooseProtocol(SSL*, const unsigned char** chosen, unsigned char* size,
                   const unsigned char* offered, unsigned int offered_size,
                   void*) {
  unsigned char* protocol = nullptr;
  if (SSL_select_next_proto(&protocol, size, kHttp11, sizeof(kHttp11) - 1,
                            offered, offered_size) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *chosen = protocol;
  return SSL_TLSEXT_ERR_OK;
}

void SetLimits(SSL_CTX* context) {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE);
  // One record at a time, so that a client which sends only the protocol's own
  // messages does not keep the thread; idle connections hold no buffers.
  SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_session_id_context(context, kSessions, sizeof(kSessions) - 1);
  SSL_CTX_set_max_cert_list(context, kMaxClientCertificates);
  SSL_CTX_set_alpn_select_cb(context, ChooseProtocol, nullptr);
}

}  // namespace

absl::StatusOr<std::unique_ptr<TlsContext>> TlsContext::Create(
    Options options) {
  auto made = absl::WrapUnique(new TlsContext(options));
  const absl::Status status = made->Renew();
  if (!status.ok()) return status;
  return made;
}

absl::Status TlsContext::Renew() {
  auto identity = options_.identity->Get();
  if (identity == identity_) return absl::OkStatus();
  identity_ = std::move(identity);
  absl::StatusOr<Context> context = Make(*identity_);
  if (context.ok()) context_ = *std::move(context);
  return context.status();
}

absl::StatusOr<TlsContext::Context> TlsContext::Make(
    const security::TlsIdentity& identity) const {
  ERR_clear_error();
  Context context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (context == nullptr) return Bad("TLS", "a context");
  SetLimits(context.get());
  if (!UseCertificates(identity.certificate_chain, context.get())) {
    return Bad("the certificate", "PEM with a CERTIFICATE and its chain");
  }
  if (!UseKey(identity.private_key, context.get())) {
    return Bad("the private key",
               "PEM with the certificate's PRIVATE KEY, without a password");
  }
  if (!identity.client_ca.empty() &&
      !AskForClients(identity.client_ca, options_.client_optional,
                     context.get())) {
    return Bad("the clients' CA", "PEM with a CERTIFICATE");
  }
  return context;
}

std::unique_ptr<Socket> TlsContext::Accept(int fd) {
  (void)Renew();
  return std::make_unique<TlsSocket>(context_.get(), fd);
}

}  // namespace sfmamba::http
