#ifndef SFMAMBA_SERVER_SECURITY_SECURITY_H_
#define SFMAMBA_SERVER_SECURITY_SECURITY_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/security/client_quotas.h"
#include "server/security/gate.h"
#include "server/security/tls_identity.h"
#include "server/security/watched_files.h"
#include "server/threads/periodic.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::security {

// All that guards the server, by its settings: who may call, how much, and the
// TLS identity. The files are watched once a second, on a thread of its own.
//
// Thread-safe, but for Open().
class Security {
 public:
  // Each must be quick and thread-safe.
  struct Events {
    // See Gate::Options.
    std::function<void(absl::string_view reason)> refused =
        [](absl::string_view) {};
    // The files of "tokens" or "tls" have changed. They are used from now on
    // or, if the status is an error, those from before.
    std::function<void(absl::string_view what, const absl::Status&)> reloaded =
        [](absl::string_view, const absl::Status&) {};
    // The end of the certificate that is used from now on.
    std::function<void(absl::Time)> certificate_expires = [](absl::Time) {};
  };

  // `config` is WithDefaults.
  Security(const v1::ServerConfig& config, Events events);

  // Reads the files that the settings name, and begins to watch them. Called
  // once, before the server listens. INVALID_ARGUMENT says which setting is
  // wrong and why.
  absl::Status Open();

  Gate& gate() { return gate_; }
  ClientQuotas& quotas() { return quotas_; }
  // Null: connections are plaintext.
  const CurrentTlsIdentity* tls() const { return has_tls_ ? &tls_ : nullptr; }

 private:
  absl::Status TakeTokens(const WatchedFiles::Contents& contents);
  absl::Status TakeIdentity(const WatchedFiles::Contents& contents);

  const v1::ServerConfig config_;
  const Events events_;
  const bool has_tls_;
  Gate gate_;
  ClientQuotas quotas_;
  CurrentTlsIdentity tls_;
  std::vector<WatchedFiles> files_;          // Used by watch_, once that runs.
  std::unique_ptr<server::Periodic> watch_;  // Last: it uses everything above.
};

}  // namespace sfmamba::security

#endif  // SFMAMBA_SERVER_SECURITY_SECURITY_H_
