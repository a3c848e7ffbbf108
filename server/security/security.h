#ifndef SFMAMBA_SERVER_SECURITY_SECURITY_H_
#define SFMAMBA_SERVER_SECURITY_SECURITY_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/security/client_quotas.h"
#include "server/security/gate.h"
#include "server/security/tls_identity.h"
#include "server/threads/worker.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::security {

// Files that belong together, such as a certificate and its key, and that are
// taken anew when what they hold changes. What they hold is compared, not their
// times or names, so a swapped symbolic link, as Kubernetes does it, is seen
// too.
//
// Thread-compatible.
class WatchedFiles {
 public:
  using Contents = std::vector<std::string>;  // In the order of the files.

  struct File {
    std::string setting;  // The setting that names the file.
    std::string path;
  };

  struct Options {
    std::vector<File> files;
    size_t max_bytes = 1 << 20;  // Most bytes of one file.
    // Takes the files' contents. On an error the previous contents stay in use.
    std::function<absl::Status(const Contents&)> take;
    // Called when the files have changed: with OK once they are taken, or once
    // with the error if they cannot be read or taken.
    std::function<void(const absl::Status&)> changed;
  };

  explicit WatchedFiles(Options options);

  // Takes the files for the first time; `changed` is not called. The error
  // names the setting and the file that cannot be read.
  absl::Status Open();
  // Takes them again if they have changed and the last look found the same:
  // they may be in the midst of being written. To be called now and then.
  void Look();

 private:
  absl::StatusOr<Contents> Read() const;

  const Options options_;
  Contents taken_;
  absl::StatusOr<Contents> seen_;     // By the last look.
  absl::StatusOr<Contents> settled_;  // What two looks last agreed on.
};

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
    std::function<void()> malformed_forward = [] {};
    // The files of "tokens" or "tls" have changed. They are used from now on
    // or, if the status is an error, those from before.
    std::function<void(absl::string_view what, const absl::Status&)> reloaded =
        [](absl::string_view, const absl::Status&) {};
    // The end of the certificate that is used from now on.
    std::function<void(absl::Time)> certificate_expires = [](absl::Time) {};
  };

  // `config` is WithDefaults.
  Security(const v1::ServerConfig& config, Events events);

  // Takes the trusted proxies, reads the files that the settings name, and
  // begins to watch them. Called once, before the server listens.
  // INVALID_ARGUMENT says which setting is wrong and why.
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
  std::vector<WatchedFiles> files_;        // Used by watch_, once that runs.
  std::unique_ptr<server::Worker> watch_;  // Last: it uses everything above.
};

}  // namespace sfmamba::security

#endif  // SFMAMBA_SERVER_SECURITY_SECURITY_H_
