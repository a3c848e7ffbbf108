#include "base/json.h"

#include "absl/strings/str_format.h"
#include "base/utf8.h"

namespace sfmamba::base {

std::string JsonString(absl::string_view text) {
  std::string json = "\"";
  while (!text.empty()) {
    const int length = Utf8CharacterLength(text);
    const char c = text.front();
    if (length == 0) {
      json += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      json += {'\\', c};
    } else if (length == 1 && (static_cast<unsigned char>(c) < 0x20)) {
      absl::StrAppendFormat(&json, "\\u%04x", c);
    } else {
      json.append(text.data(), length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  json.push_back('"');
  return json;
}

}  // namespace sfmamba::base
