#ifndef SFMAMBA_SERVER_HTTP_TLS_CONTEXT_H_
#define SFMAMBA_SERVER_HTTP_TLS_CONTEXT_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/security/tls_identity.h"

namespace boost::asio::ssl {
class context;
}  // namespace boost::asio::ssl

namespace sfmamba::http {

// Provides TLS 1.2 and 1.3 for the connections of a port. A new connection uses
// the current identity (certificate and key). Open connections keep the
// identity with which they started. Clients can resume sessions with tickets
// until the identity changes. Renegotiation and compression are off.
//
// Used by one thread.
class TlsContext {
 public:
  struct Options {
    // Provides the certificate and key. Must already contain an identity and
    // must outlive this object.
    const security::CurrentTlsIdentity* identity = nullptr;
    // If true, clients without a certificate are accepted even if the identity
    // has a client CA.
    bool client_optional = false;
  };

  // Creates a context. Returns an error of security::LoadTls() if the identity
  // is invalid.
  static absl::StatusOr<std::unique_ptr<TlsContext>> Create(Options options);

  // Returns the OpenSSL context for a new connection. If the current identity
  // is invalid, the context of the previous identity stays in use.
  boost::asio::ssl::context& Current();

 private:
  explicit TlsContext(Options options) : options_(options) {}
  // Creates a new context if the identity has changed.
  absl::Status Renew();

  const Options options_;
  std::shared_ptr<const security::TlsIdentity> identity_;
  // The context for new connections. OpenSSL keeps a replaced context alive
  // until its connections have ended.
  std::shared_ptr<boost::asio::ssl::context> context_;
};

}  // namespace sfmamba::http

#endif  // SFMAMBA_SERVER_HTTP_TLS_CONTEXT_H_
