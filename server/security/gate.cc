#include "server/security/gate.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "server/errors/error.h"
#include "server/errors/reasons.h"
#include "server/shares/client_shares.h"

namespace sfmamba::security {
namespace {

constexpr absl::string_view kScheme = "bearer ";
// In the order of Scope.
constexpr const char* kScopeNames[] = {"infer", "read", "admin"};

// Whether the caller is on this machine. `client` is without the port.
bool IsLoopback(absl::string_view client) {
  return absl::StartsWith(client, "ipv4:127.") || client == "ipv6:%5B::1%5D" ||
         absl::StartsWith(client, "ipv6:%5B::ffff:127.");
}

}  // namespace

Gate::Gate(Options options) : options_(std::move(options)) {}

void Gate::Use(Tokens tokens) {
  // Declared before the lock, the old tokens are destroyed after it.
  auto made = std::make_shared<const Tokens>(std::move(tokens));
  absl::MutexLock lock(&mu_);
  tokens_.swap(made);
}

absl::StatusOr<Caller> Gate::Check(absl::string_view authorization,
                                   absl::string_view peer, Scope scope) const {
  absl::StatusOr<Caller> caller = Find(authorization, peer, scope);
  if (!caller.ok()) {
    options_.refused(server::GetErrorDetail(caller.status()).reason);
  }
  return caller;
}

absl::StatusOr<Caller> Gate::Find(absl::string_view authorization,
                                  absl::string_view peer, Scope scope) const {
  const char* const scope_name = kScopeNames[static_cast<int>(scope)];
  std::shared_ptr<const Tokens> tokens;
  {
    absl::MutexLock lock(&mu_);
    tokens = tokens_;  // Compared without the lock.
  }
  if (tokens == nullptr) {
    const absl::string_view client = server::ClientOf(peer);
    if (scope == Scope::kAdmin && !IsLoopback(client)) {
      return server::ScopeMissing(
          client, scope_name,
          "one on the server's own machine, as there is no token_file");
    }
    return Caller{std::string(client), /*has_token=*/false, options_.quota};
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
  return client->caller;
}

}  // namespace sfmamba::security
