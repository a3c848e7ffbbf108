#include "server/http/gzip.h"

#include <zlib.h>

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace sfmamba::http {
namespace {

constexpr int kGzipFormat = 15 + 16;  // The largest window, in gzip's format.
constexpr int kMemoryLevel = 8;       // zlib's default.

}  // namespace

bool TakesGzip(const HttpRequest& request) {
  const auto [begin, end] = request.headers.equal_range("accept-encoding");
  for (auto it = begin; it != end; ++it) {
    for (absl::string_view coding : absl::StrSplit(it->second, ',')) {
      const std::vector<absl::string_view> parts = absl::StrSplit(coding, ';');
      if (!absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(parts[0]),
                                  "gzip")) {
        continue;
      }
      return parts.size() == 1 ||
             absl::StripAsciiWhitespace(parts[1]).find_first_of("123456789") !=
                 absl::string_view::npos;
    }
  }
  return false;
}

std::string Gzip(absl::string_view text) {
  z_stream stream = {};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipFormat,
                   kMemoryLevel, Z_DEFAULT_STRATEGY) != Z_OK) {
    return "";
  }
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = text.size();
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = packed.size();
  const int result = deflate(&stream, Z_FINISH);
  packed.resize(result == Z_STREAM_END ? stream.total_out : 0);
  deflateEnd(&stream);
  return packed;
}

}  // namespace sfmamba::http
