#ifndef SFMAMBA_SERVER_SECURITY_TLS_IDENTITY_H_
#define SFMAMBA_SERVER_SECURITY_TLS_IDENTITY_H_

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace boost::asio::ssl {
class context;
}  // namespace boost::asio::ssl

namespace sfmamba::security {

// What a server shows and asks for in a TLS handshake, in PEM.
struct TlsIdentity {
  std::string certificate_chain;  // The server's own certificate first.
  std::string private_key;
  std::string client_ca;  // Whoever signs clients' certificates; may be empty.
  absl::Time expires;     // The end of the server's own certificate.
};

// Gives a new context the identity. INVALID_ARGUMENT says which setting is
// wrong: the certificate or the CA cannot be read, or the key is not the
// certificate's.
absl::Status LoadTls(const TlsIdentity& identity,
                     boost::asio::ssl::context* tls);

// Makes an identity that LoadTls() takes, or returns its error. An expired
// certificate is no error: it is the clients that refuse it.
absl::StatusOr<TlsIdentity> MakeTlsIdentity(std::string certificate_chain,
                                            std::string private_key,
                                            std::string client_ca);

// The identity that new connections are to use. Connections that are open keep
// theirs. Thread-safe.
class CurrentTlsIdentity {
 public:
  // Null before the first Set(). A new pointer is a new identity.
  std::shared_ptr<const TlsIdentity> Get() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return identity_;
  }
  void Set(TlsIdentity identity) ABSL_LOCKS_EXCLUDED(mu_) {
    auto made = std::make_shared<const TlsIdentity>(std::move(identity));
    absl::MutexLock lock(&mu_);
    identity_ = std::move(made);
  }

 private:
  mutable absl::Mutex mu_;
  std::shared_ptr<const TlsIdentity> identity_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::security

#endif  // SFMAMBA_SERVER_SECURITY_TLS_IDENTITY_H_
