#ifndef SFMAMBA_SERVER_REST_CORS_H_
#define SFMAMBA_SERVER_REST_CORS_H_

#include <string>
#include <utility>
#include <vector>

#include "server/http/exchange.h"

namespace sfmamba::rest {

// The headers of an answer that let a page of another origin read it, and send
// what it asks to send (the fetch standard's CORS protocol); none for pages
// whose origin is not one of `allowed`, of which "*" is each. Cookies and
// certificates of the page's reader are never allowed.
std::vector<std::pair<std::string, std::string>> CorsHeaders(
    const std::vector<std::string>& allowed, const http::HttpRequest& request);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_CORS_H_
