#ifndef SFMAMBA_SERVER_REST_ACCESS_H_
#define SFMAMBA_SERVER_REST_ACCESS_H_

#include <optional>
#include <string>
#include <vector>

#include "server/http/exchange.h"
#include "server/rest/method_paths.h"
#include "server/security/caller.h"
#include "server/security/gate.h"

namespace sfmamba::rest {

// Returns the scope (a right, such as kInfer) that the caller of a request
// needs. Returns nullopt for probes, OPTIONS, /openapi.json and the console's
// files, which need no scope. Unknown paths need the scope kRead.
std::optional<security::Scope> ScopeOf(const MethodPaths& methods,
                                       const http::HttpRequest& request);

// Checks that the caller of a request has `scope`. Called when the request's
// head has arrived. Takes only microseconds. If the caller has the scope,
// stores the caller in the request and returns nullopt. Otherwise returns an
// error response in the format of the path's API. The response is 401 with
// reason TOKEN_INVALID or 403 with reason SCOPE_MISSING. Every caller is
// admitted if `scope` is nullopt or `gate` is null.
std::optional<http::HttpResponse> Admit(const security::Gate* gate,
                                        std::optional<security::Scope> scope,
                                        http::HttpRequest& request);

// Returns the CORS headers of a response (fetch standard). These headers allow
// pages of other origins to send the request and to read the response. Only the
// origins in `allowed` get access. "*" allows every origin. Credentials such as
// cookies and client certificates are never allowed.
http::Headers CorsHeaders(const std::vector<std::string>& allowed,
                          const http::HttpRequest& request);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_ACCESS_H_
