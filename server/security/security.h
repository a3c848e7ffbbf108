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

// Watches a set of related files, such as a certificate and its key. Reloads
// the files when their contents change. Compares the contents instead of
// modification times. A change is therefore detected even if only a symbolic
// link was replaced, as Kubernetes does for updates.
//
// Thread-compatible.
class WatchedFiles {
 public:
  // The contents of all files, in the order of Options::files.
  using Contents = std::vector<std::string>;

  struct File {
    std::string setting;  // The setting that names the file.
    std::string path;
  };

  struct Options {
    std::vector<File> files;
    size_t max_bytes = 1 << 20;  // The maximum size of one file.
    // Loads the contents. If this function returns an error, the previous
    // contents stay in use.
    std::function<absl::Status(const Contents&)> take;
    // Called after the files have changed. The status is OK if the new contents
    // were loaded. Otherwise the status is the error of reading or loading
    // them.
    std::function<void(const absl::Status&)> changed;
  };

  explicit WatchedFiles(Options options);

  // Loads the files for the first time without calling `changed`. Returns the
  // error of reading or loading them. If a file cannot be read, the error
  // message contains the name of its setting (File::setting).
  absl::Status Open();
  // Reloads the files if they have changed. A change is loaded only after two
  // calls have seen the same contents, because somebody may still be writing
  // the files. Must be called periodically.
  void Look();

 private:
  absl::StatusOr<Contents> Read() const;

  const Options options_;
  Contents taken_;
  absl::StatusOr<Contents> seen_;  // The contents found by the last Look().
  // The last contents, or the last error, that two consecutive calls of Look()
  // found.
  absl::StatusOr<Contents> settled_;
};

// Provides the access control of the server, which consists of tokens, trusted
// proxies, quotas and the TLS identity. Once a second, a background thread
// checks whether the token file or one of the TLS files has changed.
//
// Thread-safe, except for Open().
class Security {
 public:
  // All callbacks must be fast and thread-safe.
  struct Events {
    // Gate::Options describes these two callbacks.
    std::function<void(absl::string_view reason)> refused =
        [](absl::string_view) {};
    std::function<void()> malformed_forward = [] {};
    // Called after the token file (`what` is "tokens") or a TLS file (`what` is
    // "tls") has changed. If the status is an error, the previous contents stay
    // in use.
    std::function<void(absl::string_view what, const absl::Status&)> reloaded =
        [](absl::string_view, const absl::Status&) {};
    // Called with the expiry time of each newly loaded certificate.
    std::function<void(absl::Time)> certificate_expires = [](absl::Time) {};
  };

  // `config` must have been completed by WithDefaults().
  Security(const v1::ServerConfig& config, Events events);

  // Parses the trusted proxies, loads the token file and the TLS files, and
  // starts to watch the files. Must be called once, before the server listens.
  // Returns INVALID_ARGUMENT if a setting or its file is wrong. The error
  // message names the setting and the reason.
  absl::Status Open();

  Gate& gate() { return gate_; }
  ClientQuotas& quotas() { return quotas_; }
  // Returns null if connections are plaintext.
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
  // After watch_ has started, only the thread of watch_ uses this member.
  std::vector<WatchedFiles> files_;
  // This member is last, because its thread uses the members above.
  std::unique_ptr<server::Worker> watch_;
};

}  // namespace sfmamba::security

#endif  // SFMAMBA_SERVER_SECURITY_SECURITY_H_
