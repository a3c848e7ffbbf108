#include "server/rest/json_body.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/utf8.h"
#include "google/protobuf/util/json_util.h"
#include "server/errors/reasons.h"

namespace sfmamba::rest {
namespace {

// Characters of base64 that are decoded together, a multiple of 4: all that is
// copied at a time, since the result replaces the text.
constexpr size_t kPiece = 4096;
constexpr size_t kMaxShown = 512;  // Most bytes shown of protobuf's message.

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Reads the base64 characters of a JSON string: converts the URL-safe alphabet
// to the standard one and leaves line breaks out.
class Base64Characters {
 public:
  explicit Base64Characters(absl::string_view text) : text_(text) {}

  // Appends characters until `piece` has `max`. False if one is not base64's.
  bool Read(size_t max, std::string* piece) {
    while (piece->size() < max && !text_.empty()) {
      const std::optional<char> next = Next();
      if (!next) return false;
      if (IsSpace(*next)) continue;
      const char c = *next == '-' ? '+' : *next == '_' ? '/' : *next;
      if (c == '=') {
        padded_ = true;
      } else if (padded_ || !(absl::ascii_isalnum(c) || c == '+' || c == '/')) {
        return false;
      } else {
        piece->push_back(c);
      }
    }
    return true;
  }
  bool done() const { return text_.empty(); }

 private:
  std::optional<char> Next() {
    const char c = text_.front();
    text_.remove_prefix(1);
    if (c != '\\') return c;
    // EndOfString() has skipped escaped quotes, so a character follows.
    const char escaped = text_.front();
    text_.remove_prefix(1);
    if (escaped == '/') return '/';
    if (escaped == 'n' || escaped == 'r' || escaped == 't') return '\n';
    const absl::string_view digits = text_.substr(0, 4);
    int code = 0;
    if (escaped != 'u' || digits.size() < 4 ||
        !std::all_of(digits.begin(), digits.end(), absl::ascii_isxdigit) ||
        !absl::SimpleHexAtoi(digits, &code) || code > 127) {
      return std::nullopt;
    }
    text_.remove_prefix(4);
    return static_cast<char>(code);
  }

  absl::string_view text_;
  bool padded_ = false;  // After '=' nothing else may follow.
};

// Decodes base64 of `size` characters into where it is. Returns how many bytes
// it stands for; nothing if it is no base64.
std::optional<size_t> DecodeInPlace(char* text, size_t size) {
  Base64Characters characters(absl::string_view(text, size));
  std::string piece, bytes;
  size_t written = 0;
  while (!characters.done()) {
    piece.clear();
    // Decoding shortens, so that writing never overtakes reading.
    if (!characters.Read(kPiece, &piece)) return std::nullopt;
    if (!absl::Base64Unescape(piece, &bytes)) return std::nullopt;
    std::memcpy(text + written, bytes.data(), bytes.size());
    written += bytes.size();
  }
  return written;
}

// Takes long strings out of JSON.
class Cutter {
 public:
  explicit Cutter(BodyPictures* pictures) : pictures_(*pictures) {}

  // Fills rest().
  absl::Status Cut() {
    while (at_ < pictures_.size()) {
      const char c = Body()[at_];
      if (c == '"') {
        const absl::Status status = CutString();
        if (!status.ok()) return status;
      } else if (IsSpace(c)) {
        while (at_ < pictures_.size() && IsSpace(Body()[at_])) ++at_;
        rest_.push_back(' ');
      } else {
        rest_.push_back(c);
        ++at_;
      }
      if (rest_.size() > kMaxJsonRest) {
        return server::MalformedMessage(
            absl::StrCat("JSON: got more than ", kMaxJsonRest,
                         " bytes beside pictures, expected at most as many"));
      }
    }
    return absl::OkStatus();
  }
  const std::string& rest() const { return rest_; }

 private:
  const char* Body() const { return pictures_.body(); }

  // The position of the quote that ends the string whose characters begin at
  // `begin`; nothing if there is none.
  std::optional<size_t> EndOfString(size_t begin) const {
    for (size_t at = begin;;) {
      const void* quote = std::memchr(Body() + at, '"', pictures_.size() - at);
      if (quote == nullptr) return std::nullopt;
      const size_t found = static_cast<const char*>(quote) - Body();
      size_t slashes = 0;
      while (slashes < found - begin && Body()[found - 1 - slashes] == '\\') {
        ++slashes;
      }
      if (slashes % 2 == 0) return found;
      at = found + 1;
    }
  }

  absl::Status CutString() {
    const size_t begin = at_ + 1;
    const std::optional<size_t> end = EndOfString(begin);
    if (!end) {
      return server::MalformedMessage(
          absl::StrCat("JSON: the string at byte ", at_, " does not end"));
    }
    const size_t size = *end - begin;
    if (size <= kMaxJsonString) {
      rest_.append(Body() + at_, size + 2);
    } else {
      const std::optional<size_t> decoded =
          DecodeInPlace(pictures_.body() + begin, size);
      if (!decoded) {
        return server::MalformedMessage(
            absl::StrCat("JSON: got a string of ", size, " bytes at byte ", at_,
                         " that is not base64; expected at most ",
                         kMaxJsonString, " bytes, or a picture in base64"));
      }
      absl::StrAppend(&rest_, "\"",
                      absl::Base64Escape(pictures_.Add(begin, *decoded)), "\"");
    }
    at_ = *end + 1;
    return absl::OkStatus();
  }

  BodyPictures& pictures_;
  size_t at_ = 0;
  std::string rest_;
};

}  // namespace

absl::Status ReadJson(BodyPictures* pictures,
                      google::protobuf::Message* message) {
  Cutter cutter(pictures);
  const absl::Status cut = cutter.Cut();
  if (!cut.ok()) return cut;
  const auto status =
      google::protobuf::util::JsonStringToMessage(cutter.rest(), message);
  if (status.ok()) return absl::OkStatus();
  const std::string said(status.message());
  return server::MalformedMessage(
      absl::StrCat("JSON: ", absl::CHexEscape(said.substr(0, kMaxShown))));
}

}  // namespace sfmamba::rest
