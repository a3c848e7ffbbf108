#include "server/http/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace sfmamba::http {
namespace {

// kGzipFormat and kEitherFormat are values for zlib's argument windowBits. The
// value 15 selects the largest window. Adding 16 selects the gzip format.
// Adding 32 makes zlib detect whether the format is gzip or zlib.
constexpr int kGzipFormat = 15 + 16;
constexpr int kEitherFormat = 15 + 32;
// zlib's default for the argument memLevel.
constexpr int kMemoryLevel = 8;
// The number of bytes that are decompressed at once.
constexpr size_t kPiece = 64 << 10;
// The maximum compression ratio of zlib.
constexpr int64_t kMostTimes = 1040;

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

Packing PackingOf(const HttpRequest& request) {
  Packing packing = Packing::kNone;
  const auto [begin, end] = request.headers.equal_range("content-encoding");
  for (auto it = begin; it != end; ++it) {
    const std::string coding = absl::AsciiStrToLower(it->second);
    if (coding.empty() || coding == "identity") continue;
    const bool is_known =
        coding == "gzip" || coding == "x-gzip" || coding == "deflate";
    if (!is_known || packing != Packing::kNone) return Packing::kUnknown;
    packing = Packing::kZlib;
  }
  return packing;
}

std::optional<Refusal> Unpack(int64_t max_bytes, Room::Hold* room,
                              std::string* body) {
  z_stream stream = {};
  if (inflateInit2(&stream, kEitherFormat) != Z_OK) {
    return Refusal{503, "no memory to unpack the body; ask again later"};
  }
  const auto end = absl::MakeCleanup([&stream] { inflateEnd(&stream); });
  stream.next_in = reinterpret_cast<Bytef*>(body->data());
  stream.avail_in = body->size();
  const int64_t packed = body->size();
  std::string unpacked;
  // Reserves the largest possible size, so that the string never has to copy
  // its bytes to a larger buffer. The reservation is cheap, because the system
  // provides a page of memory only when the page is written.
  unpacked.reserve(std::min(max_bytes, kMostTimes * packed));
  std::string piece(kPiece, '\0');
  for (int result = Z_OK; result != Z_STREAM_END || stream.avail_in > 0;) {
    // A gzip body may consist of several members. See RFC 1952, 2.2.
    if (result == Z_STREAM_END) inflateReset(&stream);
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = piece.size();
    result = inflate(&stream, Z_NO_FLUSH);
    if (result != Z_OK && result != Z_STREAM_END) {
      return Refusal{
          400,
          absl::StrCat("expected a body packed as Content-Encoding says, "
                       "got ",
                       packed, " bytes, of which ", stream.avail_in,
                       " are not read: ",
                       stream.msg == nullptr ? "they end early" : stream.msg)};
    }
    const int64_t size = piece.size() - stream.avail_out;
    if (size > max_bytes - static_cast<int64_t>(unpacked.size())) {
      return Refusal{413, absl::StrCat("expected at most ", max_bytes,
                                       " bytes as a request's body, got more "
                                       "when it was unpacked")};
    }
    if (!room->Resize((*room)->bytes + size)) {
      return Refusal{503, absl::StrCat("no room for ", unpacked.size() + size,
                                       " bytes of a request's body; ask again "
                                       "later")};
    }
    unpacked.append(piece, 0, size);
  }
  *body = std::move(unpacked);
  return std::nullopt;
}

}  // namespace sfmamba::http
