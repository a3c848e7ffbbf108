#ifndef SFMAMBA_SERVER_HTTP_TLS_CONTEXT_H_
#define SFMAMBA_SERVER_HTTP_TLS_CONTEXT_H_

#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/http/socket.h"

namespace sfmamba::http {

// What a server shows and asks for in TLS, each as PEM.
struct TlsIdentity {
  std::string certificates;  // The server's own, then those that signed it.
  std::string private_key;   // Without a password.
  // Whose certificates clients must show; empty: none are asked for.
  std::string client_ca;
};

// The identity of a port that speaks TLS 1.2 and 1.3. It may change while
// connections are open: they go on with the one that they began with, and new
// ones begin with the new one. Sessions are resumed by tickets, which end with
// the identity. Renegotiation and compression are off.
//
// Thread-safe.
class TlsContext {
 public:
  // INVALID_ARGUMENT, naming the part that is bad, if one cannot be read or the
  // key is not the certificate's.
  static absl::StatusOr<std::shared_ptr<TlsContext>> Create(
      const TlsIdentity& identity);

  // The same errors; then the identity stays what it was.
  absl::Status Change(const TlsIdentity& identity) ABSL_LOCKS_EXCLUDED(mu_);

  // Of an accepted connection; owns `fd`, which does not block. The process
  // must ignore SIGPIPE.
  std::unique_ptr<Socket> Accept(int fd) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using Context = std::shared_ptr<SSL_CTX>;

  explicit TlsContext(Context context) : context_(std::move(context)) {}
  static absl::StatusOr<Context> Make(const TlsIdentity& identity);

  absl::Mutex mu_;
  Context context_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::http

#endif  // SFMAMBA_SERVER_HTTP_TLS_CONTEXT_H_
