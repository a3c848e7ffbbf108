#ifndef SFMAMBA_SERVER_HTTP_GZIP_H_
#define SFMAMBA_SERVER_HTTP_GZIP_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "server/http/exchange.h"
#include "server/http/room.h"

namespace sfmamba::http {

// Whether the client takes an answer packed by gzip.
bool TakesGzip(const HttpRequest& request);

// Packs by gzip, RFC 1952. Empty if there is no memory for it.
std::string Gzip(absl::string_view text);

// How a request's body is packed, by its headers Content-Encoding.
enum class Packing {
  kNone,
  kZlib,     // gzip, or deflate, which is zlib's format, RFC 1950.
  kUnknown,  // Another, or several.
};
Packing PackingOf(const HttpRequest& request);

// Unpacks a body of kZlib. Room for what comes out is taken in `room`, piece by
// piece. 413 beyond `max_bytes`, 503 if there is no room, 400 if the bytes are
// broken or end early.
std::optional<Refusal> Unpack(int64_t max_bytes, Room::Hold* room,
                              std::string* body);

}  // namespace sfmamba::http

#endif  // SFMAMBA_SERVER_HTTP_GZIP_H_
