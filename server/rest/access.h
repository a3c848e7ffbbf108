#ifndef SFMAMBA_SERVER_REST_ACCESS_H_
#define SFMAMBA_SERVER_REST_ACCESS_H_

#include <optional>
#include <string>
#include <vector>

#include "server/http/exchange.h"
#include "server/security/caller.h"
#include "server/security/gate.h"

namespace sfmamba::rest {

// What the caller of a request must be allowed to do; nothing for probes, for
// OPTIONS, for the API's description and the console's own files, which
// everybody may have. Whatever else there is, or
// is not, needs a scope.
std::optional<security::Scope> ScopeOf(const http::HttpRequest& request);

// Lets a request in whose headers have come, and writes its caller into it; or
// returns what it is refused with: 401, TOKEN_INVALID, or 403, SCOPE_MISSING,
// in the form of its path's other errors. Without a gate everybody is let in.
// Takes microseconds.
std::optional<http::HttpResponse> Admit(const security::Gate* gate,
                                        http::HttpRequest& request);

// The headers of an answer that let a page of another origin read it, and send
// what it asks to send (the fetch standard's CORS protocol); none for pages
// whose origin is not one of `allowed`, of which "*" is each. Cookies and
// certificates of the page's reader are never allowed.
http::Headers CorsHeaders(const std::vector<std::string>& allowed,
                          const http::HttpRequest& request);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_ACCESS_H_
