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

// Returns the scope that the caller of a request needs. Probes, OPTIONS, the
// API's description and the console's files need none. A path that is not
// served needs a scope too.
std::optional<security::Scope> ScopeOf(const MethodPaths& methods,
                                       const http::HttpRequest& request);

// Admits a request whose head has arrived, if its caller has `scope`, and
// writes the caller into the request. Otherwise returns the refusal, 401 with
// TOKEN_INVALID or 403 with SCOPE_MISSING, in the form of the path's other
// errors. Without a gate everybody is admitted. Takes microseconds.
std::optional<http::HttpResponse> Admit(const security::Gate* gate,
                                        std::optional<security::Scope> scope,
                                        http::HttpRequest& request);

// Returns the headers of a response that let a page of another origin read it,
// and send its request (the fetch standard's CORS protocol). Pages whose origin
// is not in `allowed` get none. "*" allows every origin. Cookies and
// certificates of the page's reader are never allowed.
http::Headers CorsHeaders(const std::vector<std::string>& allowed,
                          const http::HttpRequest& request);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_ACCESS_H_
