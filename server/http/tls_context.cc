#include "server/http/tls_context.h"

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <utility>

#include "absl/memory/memory.h"
#include "boost/asio/ssl/context.hpp"

namespace sfmamba::http {
namespace {

using boost::asio::ssl::context;

// The maximum size of a client's certificate chain, in bytes.
constexpr long kMaxClientCertificates = 32 << 10;
constexpr unsigned char kHttp11[] = "\x08http/1.1";
constexpr unsigned char kSessions[] = "sfmamba";

// Makes the server send the names of the client CAs in `context` to each
// client. The client can then choose a certificate that one of these CAs has
// signed.
void NameClientCas(SSL_CTX* context) {
  const STACK_OF(X509_OBJECT)* const objects =
      X509_STORE_get0_objects(SSL_CTX_get_cert_store(context));
  for (int i = 0; i < sk_X509_OBJECT_num(objects); ++i) {
    SSL_CTX_add_client_CA(
        context, X509_OBJECT_get0_X509(sk_X509_OBJECT_value(objects, i)));
  }
}

// Selects HTTP/1.1. Refuses a client that offers only other protocols, such as
// HTTP/2.
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
  auto tls = std::make_shared<context>(context::tls_server);
  SetLimits(tls->native_handle());
  const absl::Status status = security::LoadTls(*identity_, tls.get());
  if (!status.ok()) return status;
  if (!identity_->client_ca.empty()) {
    NameClientCas(tls->native_handle());
    tls->set_verify_mode(boost::asio::ssl::verify_peer |
                         (options_.client_optional
                              ? 0
                              : boost::asio::ssl::verify_fail_if_no_peer_cert));
  }
  context_ = std::move(tls);
  return absl::OkStatus();
}

boost::asio::ssl::context& TlsContext::Current() {
  (void)Renew();
  return *context_;
}

}  // namespace sfmamba::http
