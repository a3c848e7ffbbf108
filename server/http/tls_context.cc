#include "server/http/tls_context.h"

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <string>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "boost/asio/buffer.hpp"
#include "boost/asio/ssl/context.hpp"

namespace sfmamba::http {
namespace {

using boost::asio::ssl::context;
using Error = boost::system::error_code;

// Most bytes of the certificates that a client shows.
constexpr long kMaxClientCertificates = 32 << 10;
constexpr unsigned char kHttp11[] = "\x08http/1.1";
constexpr unsigned char kSessions[] = "sfmamba";

absl::Status Bad(absl::string_view what, absl::string_view expected,
                 const Error& error) {
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": expected ", expected, ", got ", error.message()));
}

// Names the CAs that clients' certificates are checked against to the clients.
void NameClientCas(SSL_CTX* context) {
  const STACK_OF(X509_OBJECT)* const objects =
      X509_STORE_get0_objects(SSL_CTX_get_cert_store(context));
  for (int i = 0; i < sk_X509_OBJECT_num(objects); ++i) {
    SSL_CTX_add_client_CA(
        context, X509_OBJECT_get0_X509(sk_X509_OBJECT_value(objects, i)));
  }
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
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_session_id_context(context, kSessions, sizeof(kSessions) - 1);
  SSL_CTX_set_max_cert_list(context, kMaxClientCertificates);
  SSL_CTX_set_alpn_select_cb(context, ChooseProtocol, nullptr);
}

absl::Status Load(const security::TlsIdentity& identity, bool client_optional,
                  context& tls) {
  Error error;
  // A key with a password is an error, never a question on the terminal.
  tls.set_password_callback([](auto...) { return std::string(); }, error);
  tls.use_certificate_chain(boost::asio::buffer(identity.certificate_chain),
                            error);
  if (error) {
    return Bad("the certificate", "PEM with a CERTIFICATE and its chain",
               error);
  }
  tls.use_private_key(boost::asio::buffer(identity.private_key), context::pem,
                      error);
  if (error) {
    return Bad("the private key",
               "PEM with the certificate's PRIVATE KEY, without a password",
               error);
  }
  if (identity.client_ca.empty()) return absl::OkStatus();
  tls.add_certificate_authority(boost::asio::buffer(identity.client_ca), error);
  if (error) return Bad("the clients' CA", "PEM with a CERTIFICATE", error);
  NameClientCas(tls.native_handle());
  tls.set_verify_mode(
      boost::asio::ssl::verify_peer |
          (client_optional ? 0 : boost::asio::ssl::verify_fail_if_no_peer_cert),
      error);
  return absl::OkStatus();
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
  const absl::Status status = Load(*identity_, options_.client_optional, *tls);
  if (status.ok()) context_ = std::move(tls);
  return status;
}

boost::asio::ssl::context& TlsContext::Current() {
  (void)Renew();
  return *context_;
}

}  // namespace sfmamba::http
