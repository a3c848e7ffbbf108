#include "server/repository/json_text.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/utf8.h"
#include "nlohmann/json.hpp"

namespace sfmamba::repository {
namespace {

using nlohmann::json;

// The maximum number of levels of nested objects and lists.
constexpr int kMostDepth = 20;
// The maximum number of bytes that an error quotes from the text.
constexpr size_t kMostShown = 20;

// Finds the first syntax error of a text. Stores no JSON values, so that a
// deeply nested text cannot use much memory.
class Checker : public json::json_sax_t {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool key(string_t&) override { return true; }
  bool start_object(size_t) override { return ++depth_ <= kMostDepth; }
  bool start_array(size_t) override { return ++depth_ <= kMostDepth; }
  bool end_object() override { return --depth_ >= 0; }
  bool end_array() override { return --depth_ >= 0; }
  bool parse_error(size_t position, const std::string&,
                   const json::exception&) override {
    read_ = position;
    return false;
  }

  bool is_deep() const { return depth_ > kMostDepth; }
  // Returns the number of bytes that were read when the error was found.
  size_t read() const { return read_; }

 private:
  int depth_ = 0;
  size_t read_ = 0;
};

bool IsWord(char c) {
  return absl::ascii_isalnum(c) || c == '-' || c == '+' || c == '.';
}

// Returns the offset of the first byte of the token whose last byte is at
// offset `last`.
size_t TokenAt(absl::string_view text, size_t last) {
  if (last >= text.size()) return text.size();
  // A quote or a line break at `last` ends a string. A line break means that
  // the closing quote is missing. The token starts at the opening quote.
  if (text[last] == '"' || text[last] == '\n') {
    const size_t quote = text.substr(0, last).rfind('"');
    return quote == absl::string_view::npos ? last : quote;
  }
  if (!IsWord(text[last])) return last;
  while (last > 0 && IsWord(text[last - 1])) --last;
  return last;
}

// Returns a description of the text that starts at byte `at`, for an error.
std::string Found(absl::string_view text, size_t at) {
  const absl::string_view rest = text.substr(at);
  if (rest.empty()) return "the end of the file";
  if (absl::StartsWith(rest, "//") || absl::StartsWith(rest, "/*") ||
      rest[0] == '#') {
    return "a comment";
  }
  const absl::string_view before =
      absl::StripTrailingAsciiWhitespace(text.substr(0, at));
  if ((rest[0] == '}' || rest[0] == ']') && absl::EndsWith(before, ",")) {
    return absl::StrCat("'", rest.substr(0, 1), "' behind a comma");
  }
  if (rest[0] == '"' && rest.find('"', 1) > rest.find('\n')) {
    return "a string without its closing quote";
  }
  if (absl::ascii_iscntrl(rest[0])) return "a control character";
  size_t length = 0;
  while (length < std::min(rest.size(), kMostShown) && IsWord(rest[length])) {
    ++length;
  }
  if (length > 0) return std::string(rest.substr(0, length));
  return absl::StrCat(
      "'", rest.substr(0, std::max(base::Utf8CharacterLength(rest), 1)), "'");
}

// Returns the line and column of byte `at`, such as "line 3, column 7". Columns
// count characters.
std::string Place(absl::string_view text, size_t at) {
  const absl::string_view before = text.substr(0, at);
  const size_t line = std::count(before.begin(), before.end(), '\n') + 1;
  // If there is no line break before `at`, rfind() returns npos, and npos + 1
  // is 0.
  const size_t begin = before.rfind('\n') + 1;
  return absl::StrCat("line ", line, ", column ",
                      std::max(base::Utf8Length(before.substr(begin)), 0) + 1);
}

}  // namespace

absl::Status CheckJsonObject(absl::string_view what, absl::string_view text) {
  const auto refuse = [&](const std::string& got, absl::string_view expected) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": got ", got, ", expected ", expected));
  };
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == absl::string_view::npos) {
    return refuse("an empty file", "a JSON object");
  }
  if (base::Utf8Length(text) < 0) {
    return refuse("bytes that are not UTF-8", "a JSON object");
  }
  Checker checker;
  if (json::sax_parse(text, &checker)) {
    if (text[first] == '{') return absl::OkStatus();
    return refuse(Found(text, first), "a JSON object");
  }
  if (checker.is_deep()) {
    return refuse(absl::StrCat("more than ", kMostDepth, " levels"),
                  absl::StrCat("a JSON object of at most ", kMostDepth));
  }
  const size_t at = TokenAt(text, checker.read() - 1);
  return absl::InvalidArgumentError(absl::StrCat(
      what, ": ", Place(text, at), ": got ", Found(text, at),
      ", expected JSON, which has no comments, trailing commas, NaN or "
      "Infinity"));
}

}  // namespace sfmamba::repository
