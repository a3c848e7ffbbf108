#ifndef SFMAMBA_SERVER_HTTP_RESPONSE_HEAD_H_
#define SFMAMBA_SERVER_HTTP_RESPONSE_HEAD_H_

#include <string>

#include "absl/time/time.h"
#include "server/http/exchange.h"

namespace sfmamba::http {

// The status line and the headers of an answer, with those of the connection,
// the body's length and the date, `now`. Headers with line breaks or NULs in
// them are left out.
std::string ResponseHead(const HttpResponse& response, bool keep_alive,
                         absl::Time now);

// Whether an answer of that status has a body.
bool HasBody(int status);

}  // namespace sfmamba::http

#endif  // SFMAMBA_SERVER_HTTP_RESPONSE_HEAD_H_
