#ifndef SFMAMBA_SERVER_HTTP_GZIP_H_
#define SFMAMBA_SERVER_HTTP_GZIP_H_

#include <string>

#include "absl/strings/string_view.h"
#include "server/http/exchange.h"

namespace sfmamba::http {

// Whether the client takes an answer packed by gzip.
bool TakesGzip(const HttpRequest& request);

// Packs by gzip, RFC 1952. Empty if there is no memory for it.
std::string Gzip(absl::string_view text);

}  // namespace sfmamba::http

#endif  // SFMAMBA_SERVER_HTTP_GZIP_H_
