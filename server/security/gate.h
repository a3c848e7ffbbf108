#ifndef SFMAMBA_SERVER_SECURITY_GATE_H_
#define SFMAMBA_SERVER_SECURITY_GATE_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/security/caller.h"
#include "server/security/tokens.h"
#include "server/security/trusted_proxies.h"

namespace sfmamba::security {

// Authenticates and authorizes calls for all transports:
//
//   const absl::StatusOr<Caller> caller =
//       gate.Check(headers["authorization"], {peer, forwarded}, Scope::kInfer);
//   if (!caller.ok()) return Refuse(caller.status());
//
// If there is no token file, every caller may infer and read. Only a caller on
// the loopback interface may administer. If a trusted proxy forwards the call,
// both the proxy and its client must be on the loopback interface. If there is
// a token file, every call needs a token with the required scope, even on the
// loopback interface.
//
// Thread-safe. Check() takes microseconds and never blocks for long.
class Gate {
 public:
  struct Options {
    // The default quota. Applies to callers without a token and to clients for
    // which the token file sets no quota.
    Quota quota;
    // Called with ErrorInfo.reason for each refused call. Must be fast and
    // thread-safe.
    std::function<void(absl::string_view reason)> refused =
        [](absl::string_view) {};
    // Called if a trusted proxy forwards a malformed address. Must be fast and
    // thread-safe.
    std::function<void()> malformed_forward = [] {};
  };
  // The source of a call.
  struct Origin {
    // The peer's address in gRPC's format, such as "ipv4:10.0.0.7:41234".
    std::string peer;
    // The values of the x-forwarded-for headers, in their order.
    std::vector<std::string> forwarded;
  };

  explicit Gate(Options options);

  // Replaces the tokens. Later calls need one of `tokens`. Long calls, such as
  // streams, are checked again from time to time.
  void Use(Tokens tokens) ABSL_LOCKS_EXCLUDED(mu_);
  // Sets the trusted proxies. May be called only before the first call arrives.
  void Trust(TrustedProxies proxies) { proxies_ = std::move(proxies); }

  // Returns the client's address or network, see TrustedProxies::Client. For a
  // client without a token, this is the name of the caller (Caller::name).
  // Quotas and the fair sharing of the queues identify the caller by this name.
  std::string ClientOf(const Origin& origin) const;
  // Checks the token and the scope of a call and returns the caller.
  // `authorization` is the value of the header ("Bearer ..."), or empty if the
  // header is missing. Returns UNAUTHENTICATED with reason TOKEN_INVALID if the
  // header has no known token. Returns PERMISSION_DENIED with reason
  // SCOPE_MISSING if the caller lacks the scope. No error message contains the
  // header's value.
  absl::StatusOr<Caller> Check(absl::string_view authorization,
                               const Origin& origin, Scope scope) const
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::StatusOr<Caller> Find(absl::string_view authorization,
                              const Origin& origin, Scope scope) const
      ABSL_LOCKS_EXCLUDED(mu_);

  const Options options_;
  TrustedProxies proxies_;
  mutable absl::Mutex mu_;
  // Null if there is no token file.
  std::shared_ptr<const Tokens> tokens_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::security

#endif  // SFMAMBA_SERVER_SECURITY_GATE_H_
