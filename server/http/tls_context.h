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

// Begins TLS 1.2 or 1.3 on a port's connections, with the identity that is the
// current one when they are accepted: open ones go on with theirs. Sessions are
// resumed by tickets, which end with the identity. Renegotiation and
// compression are off.
//
// Used by one thread.
class TlsContext {
 public:
  struct Options {
    // Has been set before; it outlives this.
    const security::CurrentTlsIdentity* identity = nullptr;
    // Where the identity has a CA of clients: those that show no certificate
    // are served too.
    bool client_optional = false;
  };

  // Returns the errors of security::LoadTls().
  static absl::StatusOr<std::unique_ptr<TlsContext>> Create(Options options);

  // The context that a connection begins with now. A new identity with
  // something wrong is passed over.
  boost::asio::ssl::context& Current();

 private:
  explicit TlsContext(Options options) : options_(options) {}
  // Makes the context of the current identity if that is a new one.
  absl::Status Renew();

  const Options options_;
  std::shared_ptr<const security::TlsIdentity> identity_;
  // Connections share what is in it.
  std::shared_ptr<boost::asio::ssl::context> context_;
};

}  // namespace sfmamba::http

#endif  // SFMAMBA_SERVER_HTTP_TLS_CONTEXT_H_
