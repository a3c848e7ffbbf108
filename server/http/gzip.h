#ifndef SFMAMBA_SERVER_HTTP_GZIP_H_
#define SFMAMBA_SERVER_HTTP_GZIP_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "server/http/exchange.h"
#include "server/http/room.h"

namespace sfmamba::http {

// Returns true if the client accepts a response compressed with gzip.
bool TakesGzip(const HttpRequest& request);

// Compresses `text` with gzip (RFC 1952). Returns "" if there is not enough
// memory.
std::string Gzip(absl::string_view text);

// The compression of a request's body, from its Content-Encoding headers.
enum class Packing {
  kNone,
  kZlib,     // Gzip, or deflate, which is the zlib format (RFC 1950).
  kUnknown,  // Another coding, or several codings.
};
Packing PackingOf(const HttpRequest& request);

// Decompresses a body of kZlib. Takes memory for the output from `room`, piece
// by piece. Returns a refusal with status 413 if the output exceeds
// `max_bytes`, 503 if `room` is full, or 400 if the body is corrupt or
// truncated.
std::optional<Refusal> Unpack(int64_t max_bytes, Room::Hold* room,
                              std::string* body);

}  // namespace sfmamba::http

#endif  // SFMAMBA_SERVER_HTTP_GZIP_H_
