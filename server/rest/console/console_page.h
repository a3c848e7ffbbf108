#ifndef SFMAMBA_SERVER_REST_CONSOLE_CONSOLE_PAGE_H_
#define SFMAMBA_SERVER_REST_CONSOLE_CONSOLE_PAGE_H_

#include "server/http/exchange.h"

namespace sfmamba::rest {

// The console: one page that asks this server's models about a picture and
// draws the answers, with its scripts, its style and a few sample pictures.
// They are part of the program; the page needs nothing from anywhere else, and
// its Content-Security-Policy lets it load and call nothing else.

// Answers `request`, whose path is "/" or one of /console's: 200 with the file,
// 304 without it if the caller's If-None-Match has it already, 404 if there is
// no such file, 405 unless the method is GET or HEAD. The body is that of GET:
// the transport leaves it out for HEAD.
http::HttpResponse ConsolePage(const http::HttpRequest& request);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_CONSOLE_CONSOLE_PAGE_H_
