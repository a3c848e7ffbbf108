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

// Says who may do what, for every transport:
//
//   const absl::StatusOr<Caller> caller =
//       gate.Check(headers["authorization"], {peer, forwarded}, Scope::kInfer);
//   if (!caller.ok()) return Refuse(caller.status());
//
// Without tokens everybody may infer and read, and a caller on the loopback
// interface may do everything unless it is a proxy that names another client.
// With tokens each call needs one that has its scope, wherever it comes from.
//
// Thread-safe. Check() takes microseconds and never blocks for long.
class Gate {
 public:
  struct Options {
    // The quota of addresses, and of clients to which the token file gives
    // none.
    Quota quota;
    // Called for each call that is refused, with its ErrorInfo.reason. Must be
    // quick and thread-safe.
    std::function<void(absl::string_view reason)> refused =
        [](absl::string_view) {};
    // Called when a trusted proxy names an address that cannot be read. Must be
    // quick and thread-safe.
    std::function<void()> malformed_forward = [] {};
  };
  // Where a call comes from.
  struct Origin {
    std::string peer;  // In gRPC's form, "ipv4:10.0.0.7:41234".
    // The headers x-forwarded-for in their order.
    std::vector<std::string> forwarded;
  };

  explicit Gate(Options options);

  // From now on calls need one of `tokens`. What takes long, such as a stream,
  // checks again now and then.
  void Use(Tokens tokens) ABSL_LOCKS_EXCLUDED(mu_);
  // To be called before the first call comes.
  void Trust(TrustedProxies proxies) { proxies_ = std::move(proxies); }

  // The client whom shares and quotas count if it has no token: its address.
  std::string ClientOf(const Origin& origin) const;
  // `authorization` is the header's value, "Bearer ...", or empty if there is
  // none.
  // UNAUTHENTICATED, TOKEN_INVALID, if the header has no token that is known;
  // PERMISSION_DENIED, SCOPE_MISSING, if the caller may not do this. No error
  // shows what was sent.
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
  std::shared_ptr<const Tokens> tokens_ ABSL_GUARDED_BY(mu_);  // Null: none.
};

}  // namespace sfmamba::security

#endif  // SFMAMBA_SERVER_SECURITY_GATE_H_
