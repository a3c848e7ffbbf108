#include "server/rest/kserve/json_tokens.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/errors/reasons.h"

namespace sfmamba::rest {
namespace {

// Whether a word ends before this character.
bool EndsWord(char c) {
  switch (c) {
    case ' ':
    case '\t':
    case '\n':
    case '\r':
    case ',':
    case ':':
    case '[':
    case ']':
    case '{':
    case '}':
      return true;
    default:
      return false;
  }
}

// Returns the position of the last quote of the string whose first quote is at
// `begin`, or the end of the text.
size_t EndOfString(absl::string_view json, size_t begin) {
  size_t at = begin + 1;
  while (at < json.size() && json[at] != '"') at += json[at] == '\\' ? 2 : 1;
  return std::min(at, json.size());
}

absl::Status TooLong(absl::string_view what, size_t begin, size_t most) {
  return server::MalformedMessage(absl::StrCat(
      "got ", what, " of more than ", most, " bytes from byte ", begin,
      " of the JSON on, expected fewer; binary data may be longer"));
}

}  // namespace

absl::Status CheckJsonTokens(absl::string_view json) {
  size_t word = 0;  // Where the current word begins.
  for (size_t at = 0; at < json.size(); ++at) {
    if (json[at] == '"') {
      const size_t end = EndOfString(json, at);
      if (end - at > kMaxJsonStringBytes) {
        return TooLong("a string", at, kMaxJsonStringBytes);
      }
      at = end;
      word = at + 1;
    } else if (EndsWord(json[at])) {
      word = at + 1;
    } else if (at - word >= kMaxJsonWordBytes) {
      return TooLong("a word", word, kMaxJsonWordBytes);
    }
  }
  return absl::OkStatus();
}

}  // namespace sfmamba::rest
