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

// The certificates and the key that the server uses in TLS handshakes, in PEM.
struct TlsIdentity {
  std::string certificate_chain;  // Starts with the server's own certificate.
  std::string private_key;
  std::string client_ca;  // The CA that signs client certificates, or empty.
  absl::Time expires;     // Expiry time of the server's certificate.
};

// Configures a new context with the identity. Returns INVALID_ARGUMENT with the
// wrong setting if the certificate or the CA cannot be parsed or the key does
// not match the certificate.
absl::Status LoadTls(const TlsIdentity& identity,
                     boost::asio::ssl::context* tls);

// Returns an identity that LoadTls() accepts, or the error of LoadTls(). An
// expired certificate is accepted here, because clients check the expiry.
absl::StatusOr<TlsIdentity> MakeTlsIdentity(std::string certificate_chain,
                                            std::string private_key,
                                            std::string client_ca);

// The identity for new connections. Open connections keep their identity.
// Thread-safe.
class CurrentTlsIdentity {
 public:
  // Returns null before the first Set(). Each Set() makes a new pointer.
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
