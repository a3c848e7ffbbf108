#include "server/security/gate.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "server/errors/error.h"
#include "server/errors/reasons.h"

namespace sfmamba::security {
namespace {

constexpr absl::string_view kScheme = "bearer ";
// Indexed by Scope.
constexpr const char* kScopeNames[] = {"infer", "read", "admin"};

// Returns true if the client is on this machine.
bool IsLoopback(absl::string_view client) {
  return absl::StartsWith(client, "ipv4:127.") || client == "ipv6:::1";
}

}  // namespace

Gate::Gate(Options options) : options_(std::move(options)) {}

void Gate::Use(Tokens tokens) {
  // Declared before the lock, so that `made` is destroyed after unlocking.
  // After the swap, `made` contains the old tokens.
  auto made = std::make_shared<const Tokens>(std::move(tokens));
  absl::MutexLock lock(&mu_);
  tokens_.swap(made);
}

std::string Gate::ClientOf(const Origin& origin) const {
  const TrustedProxies::Client client =
      proxies_.ClientOf(origin.peer, origin.forwarded);
  if (client.malformed) options_.malformed_forward();
  return client.name;
}

absl::StatusOr<Caller> Gate::Check(absl::string_view authorization,
                                   const Origin& origin, Scope scope) const {
  absl::StatusOr<Caller> caller = Find(authorization, origin, scope);
  if (!caller.ok()) {
    options_.refused(server::GetErrorDetail(caller.status()).reason);
  }
  return caller;
}

absl::StatusOr<Caller> Gate::Find(absl::string_view authorization,
                                  const Origin& origin, Scope scope) const {
  const char* const scope_name = kScopeNames[static_cast<int>(scope)];
  std::shared_ptr<const Tokens> tokens;
  {
    absl::MutexLock lock(&mu_);
    tokens = tokens_;  // The copy is searched without the lock.
  }
  if (tokens == nullptr) {
    const std::string client = ClientOf(origin);
    const std::string peer = proxies_.ClientOf(origin.peer, {}).name;
    if (scope == Scope::kAdmin && !(IsLoopback(client) && IsLoopback(peer))) {
      return server::ScopeMissing(client, scope_name,
                                  "a call from the server's own machine, "
                                  "because token_file is not set");
    }
    return Caller{client, /*has_token=*/false, options_.quota};
  }
  if (authorization.empty()) return server::TokenInvalid("none");
  if (!absl::StartsWithIgnoreCase(authorization, kScheme)) {
    return server::TokenInvalid("another scheme");
  }
  authorization.remove_prefix(kScheme.size());
  const Tokens::Client* const client =
      tokens->Find(absl::StripAsciiWhitespace(authorization));
  if (client == nullptr) return server::TokenInvalid("an unknown token");
  if (!client->Has(scope)) {
    return server::ScopeMissing(client->caller.name, scope_name,
                                "a token that has it");
  }
  Caller caller = client->caller;
  caller.may_read = client->Has(Scope::kRead);
  return caller;
}

}  // namespace sfmamba::security
