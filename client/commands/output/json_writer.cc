#include "client/commands/output/json_writer.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/json.h"

namespace sfmamba::client {

JsonWriter& JsonWriter::Key(absl::string_view key) {
  Separate();
  absl::StrAppend(&text_, base::JsonString(key), ": ");
  comma_due_ = false;
  return *this;
}

JsonWriter& JsonWriter::String(absl::string_view value) {
  Separate();
  text_ += base::JsonString(value);
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

JsonWriter& JsonWriter::Exact(float value) {
  Separate();
  text_ += std::isfinite(value) ? absl::StrFormat("%.9g", value) : "null";
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

}  // namespace sfmamba::client
