#ifndef SFMAMBA_SERVER_REST_CONSOLE_CONSOLE_PAGE_H_
#define SFMAMBA_SERVER_REST_CONSOLE_CONSOLE_PAGE_H_

#include "server/http/exchange.h"

namespace sfmamba::rest {

// The console is a web page that sends pictures to the server's models and
// draws the results. Its scripts, style and sample pictures are embedded in the
// server binary. The page loads nothing from other servers. Its
// Content-Security-Policy also forbids requests to other servers.

// Answers a request whose path is "/" or below /console. The response is one of
// these:
// - 200 with the file.
// - 304 without a body if an If-None-Match header contains the file's ETag.
// - 404 if the file does not exist.
// - 405 if the method is not GET or HEAD.
// For HEAD, the transport removes the body.
http::HttpResponse ConsolePage(const http::HttpRequest& request);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_CONSOLE_CONSOLE_PAGE_H_
