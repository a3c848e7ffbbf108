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

// Tells how a request's body is compressed, according to its Content-Encoding
// headers.
enum class Packing {
  kNone,
  kZlib,     // gzip, or deflate in the zlib format (RFC 1950).
  kUnknown,  // Another coding, or several codings.
};
Packing PackingOf(const HttpRequest& request);

// Decompresses a body of Packing::kZlib in place. `room` is the memory
// reservation for the body, and grows with the output. Returns nullopt on
// success. Returns a refusal with status 413 if the output exceeds `max_bytes`,
// with 503 if there is not enough memory, or with 400 if the body is corrupt or
// truncated.
std::optional<Refusal> Unpack(int64_t max_bytes, Room::Hold* room,
                              std::string* body);

}  // namespace sfmamba::http

#endif  // SFMAMBA_SERVER_HTTP_GZIP_H_
