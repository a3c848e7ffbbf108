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

// The certificates and the key that the server uses in TLS handshakes. All
// texts are in PEM format.
struct TlsIdentity {
  std::string certificate_chain;  // Starts with the server's own certificate.
  std::string private_key;
  std::string client_ca;  // The CA that signs client certificates, or empty.
  absl::Time expires;     // Expiry time of the server's certificate.
};

// Configures `tls`, a new context, with the identity. Returns INVALID_ARGUMENT
// if the certificate, the key or the CA cannot be parsed, or if the key does
// not match the certificate. The error names the setting that is wrong, for
// example tls_key_file.
absl::Status LoadTls(const TlsIdentity& identity,
                     boost::asio::ssl::context* tls);

// Creates an identity from texts in PEM format. Returns the error of LoadTls()
// if the texts are not usable. Accepts an expired certificate, because clients
// check the expiry.
absl::StatusOr<TlsIdentity> MakeTlsIdentity(std::string certificate_chain,
                                            std::string private_key,
                                            std::string client_ca);

// The identity that new connections use. Open connections keep the identity
// with which they were opened. Thread-safe.
class CurrentTlsIdentity {
 public:
  // Returns null before the first Set(). The pointer is different after each
  // Set(), so that callers can detect a change.
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
