#include "client/commands/json_writer.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace sfmamba::client {

JsonWriter& JsonWriter::Key(absl::string_view key) {
  Separate();
  Quote(key);
  text_ += ": ";
  comma_due_ = false;
  return *this;
}

JsonWriter& JsonWriter::String(absl::string_view value) {
  Separate();
  Quote(value);
  return *this;
}

JsonWriter& JsonWriter::Integer(int64_t value) {
  Separate();
  absl::StrAppend(&text_, value);
  return *this;
}

JsonWriter& JsonWriter::Number(double value) {
  Separate();
  text_ += std::isfinite(value) ? absl::StrCat(value) : "null";
  return *this;
}

JsonWriter& JsonWriter::Bool(bool value) {
  Separate();
  text_ += value ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::Open(char bracket) {
  Separate();
  text_ += bracket;
  comma_due_ = false;
  return *this;
}

JsonWriter& JsonWriter::Close(char bracket) {
  text_ += bracket;
  comma_due_ = true;
  return *this;
}

void JsonWriter::Separate() {
  if (comma_due_) text_ += ", ";
  comma_due_ = true;
}

void JsonWriter::Quote(absl::string_view value) {
  text_ += '"';
  for (const char c : value) {
    if (c == '"' || c == '\\') {
      text_ += '\\';
      text_ += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&text_, "\\u%04x", static_cast<int>(c));
    } else {
      text_ += c;
    }
  }
  text_ += '"';
}

}  // namespace sfmamba::client
