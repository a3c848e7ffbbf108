#include "base/image_format.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace sfmamba::base {
namespace {

// TextName() and IsPlainText() look at no more than this many bytes of a file.
constexpr size_t kSearched = 1024;

struct Magic {
  size_t offset;
  absl::string_view bytes;
  absl::string_view name;
};

// The first entry whose bytes occur at `offset` names the file's format. A file
// that begins with a box "ftyp" is named by the brand in this box.
constexpr Magic kMagics[] = {
    {0, "GIF8", "a GIF"},
    {0, {"II*\0", 4}, "a TIFF"},
    {0, {"MM\0*", 4}, "a TIFF"},
    {4, "ftypavif", "an AVIF"},
    {4, "ftypavis", "an AVIF"},
    {4, "ftyphe", "a HEIC"},
    {4, "ftypmif1", "a HEIC"},
    {4, "ftypmsf1", "a HEIC"},
    {4, "ftyp", "a video"},
    {0, "\xFF\x0A", "a JPEG XL"},
    {0, {"\0\0\0\x0CJXL ", 8}, "a JPEG XL"},
    {0, "%PDF-", "a PDF"},
    {0, "PK\3\4", "a ZIP archive"},
    {0, "PK\5\6", "a ZIP archive"},
    {0, {"\0\0\0\x0CjP  ", 8}, "a JPEG 2000"},
    {0, "\xFF\x4F\xFF\x51", "a JPEG 2000"},
    {0, {"\0\0\1\0", 4}, "an ICO"},
    {0, "8BPS", "a PSD"},
    {0, "\x1A\x45\xDF\xA3", "a video"},
    {0, "\x1F\x8B", "a file packed by gzip"},
    {0, "\x89PNG", "a PNG that was changed as if it were text"},
    {0, "data:", "a data: URI, not the bytes in it"},
    {0, "/9j/", "a JPEG in base64, not its bytes"},
    {0, "_9j_", "a JPEG in base64, not its bytes"},
    {0, "iVBORw0K", "a PNG in base64, not its bytes"},
    {0, "UklGR", "a WebP in base64, not its bytes"},
};

// Returns true if `bytes` begin like a BMP: two letters, the file's length and
// four zero bytes.
bool IsBmp(absl::string_view bytes) {
  return bytes.size() >= 14 && absl::StartsWith(bytes, "BM") &&
         bytes.substr(6, 4) == absl::string_view("\0\0\0\0", 4);
}

// Returns true if all bytes are printable ASCII characters or white space.
bool IsPlainText(absl::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](unsigned char c) {
    return absl::ascii_isprint(c) || absl::ascii_isspace(c);
  });
}

// Returns the kind of a text file that begins with `start`, for example "JSON".
// Returns "" if the kind is unknown.
absl::string_view TextName(absl::string_view start) {
  absl::ConsumePrefix(&start, "\xEF\xBB\xBF");  // The byte order mark.
  const std::string text =
      absl::AsciiStrToLower(absl::StripLeadingAsciiWhitespace(start));
  if (absl::StartsWith(text, "{") || absl::StartsWith(text, "[")) return "JSON";
  if (!absl::StartsWith(text, "<")) return "";
  if (absl::StrContains(text, "<html") ||
      absl::StrContains(text, "<!doctype html")) {
    return "an HTML page";
  }
  if (absl::StrContains(text, "<svg")) return "an SVG";
  return absl::StartsWith(text, "<?xml") ? "XML" : "an HTML page";
}

std::string Name(absl::string_view bytes) {
  if (bytes.empty()) return "nothing, 0 bytes";
  for (const Magic& magic : kMagics) {
    if (bytes.size() < magic.offset ||
        !absl::StartsWith(bytes.substr(magic.offset), magic.bytes)) {
      continue;
    }
    // An AVIF file may name a general brand first and its own brand after it.
    const bool is_avif = magic.bytes == "ftypmif1" &&
                         absl::StrContains(bytes.substr(12, 32), "avif");
    return std::string(is_avif ? "an AVIF" : magic.name);
  }
  if (IsBmp(bytes)) return "a BMP";
  const absl::string_view text = TextName(bytes.substr(0, kSearched));
  if (!text.empty()) return std::string(text);
  if (IsPlainText(bytes.substr(0, kSearched))) return "text";
  return absl::StrCat("no known kind of file, it begins with the bytes ",
                      absl::BytesToHexString(bytes.substr(0, 8)));
}

}  // namespace

std::optional<ImageFormat> FormatOf(absl::string_view bytes) {
  if (absl::StartsWith(bytes, "\xFF\xD8")) return ImageFormat::kJpeg;
  if (absl::StartsWith(bytes, "\x89PNG\r\n\x1A\n")) return ImageFormat::kPng;
  if (absl::StartsWith(bytes, "RIFF") && bytes.size() >= 12 &&
      bytes.substr(8, 4) == "WEBP") {
    return ImageFormat::kWebp;
  }
  return std::nullopt;
}

absl::Status ForeignFormat(absl::string_view bytes) {
  return absl::UnimplementedError(
      absl::StrCat("this is ", Name(bytes), "; JPEG, PNG and WebP are taken"));
}

}  // namespace sfmamba::base
