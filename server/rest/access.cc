#include "server/rest/access.h"

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "server/rest/call_headers.h"
#include "server/rest/error_response.h"
#include "server/rest/kserve/response.h"
#include "server/rest/kserve/route.h"

namespace sfmamba::rest {
namespace {

using security::Scope;

bool IsUnder(absl::string_view path, absl::string_view folder) {
  return absl::StartsWith(path, folder) &&
         (path.size() == folder.size() || path[folder.size()] == '/');
}

std::optional<Scope> KserveScope(const http::HttpRequest& request) {
  const std::optional<KserveRoute> route = FindKserveRoute(request.path);
  if (!route.has_value()) return Scope::kRead;
  switch (route->action) {
    case KserveAction::kServerLive:
    case KserveAction::kServerReady:
      return std::nullopt;
    case KserveAction::kInfer:
      return Scope::kInfer;
    case KserveAction::kLoad:
    case KserveAction::kUnload:
      return Scope::kAdmin;
    case KserveAction::kSettings:
      return request.method == "POST" ? Scope::kAdmin : Scope::kRead;
    default:
      return Scope::kRead;
  }
}

// Returns the value of the header Authorization. Several are refused: a proxy
// in front of the server may have checked another one of them.
absl::string_view Authorization(const http::HttpRequest& request) {
  constexpr char kName[] = "authorization";
  if (request.headers.count(kName) > 1) return "several";
  return Header(request, kName);
}

}  // namespace

std::optional<Scope> ScopeOf(const http::HttpRequest& request) {
  const absl::string_view path = request.path;
  if (path == "/healthz" || path == "/livez" || path == "/readyz") {
    return std::nullopt;
  }
  if (path == "/" || IsUnder(path, "/console")) return std::nullopt;
  if (IsUnder(path, "/v2")) return KserveScope(request);
  if (IsUnder(path, "/v1/models") && absl::StrContains(path, ':')) {
    return Scope::kInfer;
  }
  return Scope::kRead;
}

std::optional<http::HttpResponse> Admit(const security::Gate* gate,
                                        http::HttpRequest& request) {
  const std::optional<Scope> scope = ScopeOf(request);
  if (gate == nullptr || !scope.has_value()) return std::nullopt;
  absl::StatusOr<security::Caller> caller =
      gate->Check(Authorization(request), request.peer, *scope);
  if (caller.ok()) {
    request.caller = *std::move(caller);
    return std::nullopt;
  }
  http::HttpResponse response = IsUnder(request.path, "/v2")
                                    ? KserveError(caller.status())
                                    : ErrorResponse(caller.status());
  if (absl::IsUnauthenticated(caller.status())) {
    response.headers.emplace_back("WWW-Authenticate", "Bearer");
  }
  return response;
}

}  // namespace sfmamba::rest
