#include "server/rest/access.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/rest/call_headers.h"
#include "server/rest/error_response.h"

namespace sfmamba::rest {
namespace {

using security::Scope;

constexpr char kMethods[] = "GET, HEAD, POST, PUT";
constexpr char kRequestHeaders[] =
    "Accept, Authorization, Content-Encoding, Content-Type, Grpc-Timeout, "
    "Inference-Header-Content-Length, Traceparent, Tracestate, "
    "X-Request-Timeout";
constexpr char kAnswerHeaders[] =
    "Inference-Header-Content-Length, Retry-After";
// The time in seconds for which browsers may cache a CORS preflight response.
constexpr char kSeconds[] = "600";

// Returns the value of the header Authorization. Returns an invalid value if
// there are several such headers, because a proxy in front of the server may
// have checked a different header than the server would.
absl::string_view Authorization(const http::HttpRequest& request) {
  constexpr char kName[] = "authorization";
  if (request.headers.count(kName) > 1) return "several";
  return Header(request, kName);
}

security::Gate::Origin OriginOf(const http::HttpRequest& request) {
  security::Gate::Origin origin = {request.peer, {}};
  const auto range = request.headers.equal_range("x-forwarded-for");
  for (auto found = range.first; found != range.second; ++found) {
    origin.forwarded.push_back(found->second);
  }
  return origin;
}

}  // namespace

std::optional<Scope> ScopeOf(const MethodPaths& methods,
                             const http::HttpRequest& request) {
  const absl::string_view path = request.path;
  // These requests need no scope. For example, browsers send preflight requests
  // (OPTIONS) without a token.
  if (request.method == "OPTIONS" || path == "/openapi.json") {
    return std::nullopt;
  }
  if (path == "/healthz" || path == "/livez" || path == "/readyz") {
    return std::nullopt;
  }
  if (path == "/" || IsUnder(path, "/console")) return std::nullopt;
  const auto found = methods.Find(request.method, path);
  return found.has_value() ? found->method->scope : Scope::kRead;
}

std::optional<http::HttpResponse> Admit(const security::Gate* gate,
                                        std::optional<Scope> scope,
                                        http::HttpRequest& request) {
  if (gate == nullptr) return std::nullopt;
  const security::Gate::Origin origin = OriginOf(request);
  if (!scope.has_value()) {
    request.caller.name = gate->ClientOf(origin);
    return std::nullopt;
  }
  absl::StatusOr<security::Caller> caller =
      gate->Check(Authorization(request), origin, *scope);
  if (caller.ok()) {
    request.caller = *std::move(caller);
    return std::nullopt;
  }
  http::HttpResponse response = ErrorAt(request.path, caller.status());
  if (absl::IsUnauthenticated(caller.status())) {
    response.headers.emplace_back("WWW-Authenticate", "Bearer");
  }
  return response;
}

http::Headers CorsHeaders(const std::vector<std::string>& allowed,
                          const http::HttpRequest& request) {
  if (allowed.empty()) return {};
  const auto is_allowed = [&allowed](absl::string_view origin) {
    return std::find(allowed.begin(), allowed.end(), origin) != allowed.end();
  };
  const absl::string_view origin = Header(request, "origin");
  // This header tells caches not to reuse the response for another origin.
  http::Headers headers = {{"Vary", "Origin"}};
  if (origin.empty() || !(is_allowed("*") || is_allowed(origin))) {
    return headers;
  }
  headers.emplace_back("Access-Control-Allow-Origin",
                       is_allowed("*") ? "*" : std::string(origin));
  headers.emplace_back("Access-Control-Expose-Headers", kAnswerHeaders);
  if (request.method == "OPTIONS") {
    headers.emplace_back("Access-Control-Allow-Methods", kMethods);
    headers.emplace_back("Access-Control-Allow-Headers", kRequestHeaders);
    headers.emplace_back("Access-Control-Max-Age", kSeconds);
  }
  return headers;
}

}  // namespace sfmamba::rest
