#include "server/rest/json_body.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/random/random.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/util/json_util.h"
#include "server/errors/reasons.h"

namespace sfmamba::rest {
namespace {

constexpr size_t kSecretBytes = 16;
// An error message of the server contains at most this many bytes of protobuf's
// own error message.
constexpr size_t kMaxShown = 512;
constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Decodes the escape sequence that starts with the backslash at `text[*at]`.
// Sets `*at` to the position of the last byte of the sequence. Returns nullopt
// if the character cannot occur in base64.
std::optional<char> Unescape(absl::string_view text, size_t* at) {
  // EndOfString() ends a string only at a quote that is not escaped. The last
  // character of `text` therefore never starts an escape sequence, and
  // text[*at + 1] exists.
  const char c = text[++*at];
  if (c == 'n' || c == 'r' || c == 't') return '\n';
  if (c == '/') return c;
  if (c != 'u') return std::nullopt;
  const absl::string_view digits = text.substr(*at + 1, 4);
  int code = 0;
  if (digits.size() < 4 ||
      !std::all_of(digits.begin(), digits.end(), absl::ascii_isxdigit) ||
      !absl::SimpleHexAtoi(digits, &code) || code > 127) {
    return std::nullopt;
  }
  *at += 4;
  return static_cast<char>(code);
}

// Decodes the base64 text of a JSON string into `bytes`. `text` is the part of
// the JSON between the quotes. Overwrites `text` while decoding. Returns false
// if the text is not valid base64.
bool Decode(char* text, size_t size, std::string* bytes) {
  // The loop removes escapes and whitespace and converts the text to the
  // standard base64 alphabet.
  size_t clean = 0;
  for (size_t at = 0; at < size; ++at) {
    std::optional<char> next = text[at];
    if (next == '\\') next = Unescape({text, size}, &at);
    if (!next) return false;
    if (IsSpace(*next)) continue;
    const char c = *next == '-' ? '+' : *next == '_' ? '/' : *next;
    if (!absl::ascii_isalnum(c) && c != '+' && c != '/' && c != '=') {
      return false;
    }
    text[clean++] = c;
  }
  return absl::Base64Unescape({text, clean}, bytes);
}

// Returns random bytes. Every placeholder (the text that replaces a picture)
// begins with these bytes. No client can guess the bytes, so no string that a
// client sends equals a placeholder.
std::string NewSecret() {
  absl::BitGen random;
  std::string secret;
  while (secret.size() < kSecretBytes) {
    secret.push_back(static_cast<char>(absl::Uniform<uint8_t>(random)));
  }
  return secret;
}

// Cuts long strings out of JSON and decodes them from base64. rest() is the
// JSON with a short placeholder in place of each long string. The placeholders
// are base64 too.
class Cutter {
 public:
  explicit Cutter(std::string json)
      : json_(std::move(json)),
        at_(absl::StartsWith(json_, kByteOrderMark) ? kByteOrderMark.size()
                                                    : 0) {}

  // Extracts the strings and fills rest().
  absl::Status Cut() {
    while (at_ < json_.size()) {
      const char c = json_[at_];
      if (c == '"') {
        const absl::Status status = CutString();
        if (!status.ok()) return status;
      } else if (IsSpace(c)) {
        while (at_ < json_.size() && IsSpace(json_[at_])) ++at_;
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
  // If `bytes` is a placeholder, replaces it with the picture and returns true.
  // Otherwise returns false and does not change `bytes`. May be called at most
  // once for each placeholder.
  bool Fill(std::string* bytes) {
    uint32_t index;
    if (bytes->size() != kSecretBytes + sizeof(index) ||
        !absl::StartsWith(*bytes, secret_)) {
      return false;
    }
    std::memcpy(&index, bytes->data() + kSecretBytes, sizeof(index));
    *bytes = std::move(pictures_[index]);
    return true;
  }
  size_t placeholders() const { return pictures_.size(); }
  // Replaces the first placeholder in `message` with "..." and returns the
  // result. `message` is an error message about rest().
  std::string WithoutPlaceholder(std::string message) const {
    // The length of a placeholder after encoding in base64.
    constexpr size_t kPlaceholderSize = 28;
    const std::string start =
        absl::Base64Escape(secret_.substr(0, kSecretBytes / 3 * 3));
    const size_t found = message.find(start);
    if (found != message.npos) message.replace(found, kPlaceholderSize, "...");
    return message;
  }

 private:
  // Returns the position of the quote that ends the string starting at `begin`.
  // Returns nullopt if there is no such quote.
  std::optional<size_t> EndOfString(size_t begin) const {
    for (size_t at = begin;;) {
      const size_t found = json_.find('"', at);
      if (found == json_.npos) return std::nullopt;
      size_t slashes = 0;
      while (slashes < found - begin && json_[found - 1 - slashes] == '\\') {
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
      rest_.append(json_, at_, size + 2);
    } else {
      const uint32_t index = pictures_.size();
      if (!Decode(&json_[begin], size, &pictures_.emplace_back())) {
        return server::MalformedMessage(
            absl::StrCat("JSON: got a string of ", size, " bytes at byte ", at_,
                         " that is not base64; expected at most ",
                         kMaxJsonString, " bytes, or a picture in base64",
                         json_.compare(begin, 5, "data:") == 0
                             ? " without the URI's part up to the comma"
                             : ""));
      }
      std::string placeholder = secret_;
      placeholder.append(reinterpret_cast<const char*>(&index), sizeof(index));
      absl::StrAppend(&rest_, "\"", absl::Base64Escape(placeholder), "\"");
    }
    at_ = *end + 1;
    return absl::OkStatus();
  }

  std::string json_;
  const std::string secret_ = NewSecret();
  size_t at_;
  std::string rest_;
  std::vector<std::string> pictures_;
};

}  // namespace

std::string* BytesOf(v1::Image* image) {
  if (image->has_encoded()) return image->mutable_encoded();
  if (image->has_pixels()) return image->mutable_pixels()->mutable_data();
  if (image->has_tensor()) return image->mutable_tensor()->mutable_data();
  return nullptr;
}

absl::Status ReadJson(std::string json, google::protobuf::Message* request) {
  Cutter cutter(std::move(json));
  const absl::Status cut = cutter.Cut();
  if (!cut.ok()) return cut;
  const auto status =
      google::protobuf::util::JsonStringToMessage(cutter.rest(), request);
  if (!status.ok()) {
    const std::string said =
        cutter.WithoutPlaceholder(std::string(status.message()));
    return server::MalformedMessage(absl::StrCat(
        "JSON: ", absl::CHexEscape(said.substr(0, kMaxShown)),
        absl::EndsWith(said, "sfmamba.v1.Image")
            ? "; expected an object such as {\"encoded\": \"<base64>\"}"
            : ""));
  }
  const auto& fields = *request->GetReflection();
  const auto* images = request->GetDescriptor()->FindFieldByName("images");
  size_t filled = 0;
  for (int i = 0; i < fields.FieldSize(*request, images); ++i) {
    auto* image = static_cast<v1::Image*>(
        fields.MutableRepeatedMessage(request, images, i));
    std::string* const bytes = BytesOf(image);
    if (bytes != nullptr && cutter.Fill(bytes)) ++filled;
  }
  if (filled == cutter.placeholders()) return absl::OkStatus();
  // Some field other than a picture contains a placeholder. The client has sent
  // a long string in this field, which is an error.
  return server::MalformedMessage(
      absl::StrCat("JSON: got a string that is no picture's, expected at most ",
                   kMaxJsonString, " bytes"));
}

}  // namespace sfmamba::rest
