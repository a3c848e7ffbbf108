#include "base/utf8.h"

#include "absl/strings/str_cat.h"

namespace sfmamba::base {

int Utf8CharacterLength(absl::string_view text) {
  const auto byte = [text](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const auto follows = [byte](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const bool overlong = first == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = first == 0xED && byte(1) >= 0xA0;
    return follows(1) && follows(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const bool overlong = first == 0xF0 && byte(1) < 0x90;
    const bool beyond = first == 0xF4 && byte(1) >= 0x90;
    return follows(1) && follows(2) && follows(3) && !overlong && !beyond ? 4
                                                                          : 0;
  }
  return 0;
}

int Utf8Length(absl::string_view text) {
  int characters = 0;
  while (!text.empty()) {
    const int length = Utf8CharacterLength(text);
    if (length == 0) return -1;
    text.remove_prefix(length);
    ++characters;
  }
  return characters;
}

std::string ToUtf8(absl::string_view text) {
  std::string mended;
  while (!text.empty()) {
    const int length = Utf8CharacterLength(text);
    absl::StrAppend(&mended,
                    length == 0 ? "\xEF\xBF\xBD" : text.substr(0, length));
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return mended;
}

absl::string_view Utf8Prefix(absl::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  size_t end = max_bytes;
  // A UTF-8 character has at most three bytes after its first.
  while (end > 0 && max_bytes - end < 3 && (text[end] & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

}  // namespace sfmamba::base
