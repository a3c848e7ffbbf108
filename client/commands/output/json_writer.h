#ifndef SFMAMBA_CLIENT_COMMANDS_OUTPUT_JSON_WRITER_H_
#define SFMAMBA_CLIENT_COMMANDS_OUTPUT_JSON_WRITER_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace sfmamba::client {

// Writes one JSON text, value by value. The writer adds the commas. The caller
// must nest objects and arrays correctly.
//
//   JsonWriter json;
//   json.BeginObject().Key("label").String("cup").Key("score").Number(0.9).EndObject();
class JsonWriter {
 public:
  JsonWriter& BeginObject() { return Open('{'); }
  JsonWriter& EndObject() { return Close('}'); }
  JsonWriter& BeginArray() { return Open('['); }
  JsonWriter& EndArray() { return Close(']'); }

  JsonWriter& Key(absl::string_view key);
  // Quotes and escapes like base::JsonString().
  JsonWriter& String(absl::string_view value);
  JsonWriter& Integer(int64_t value);
  // Writes six digits, or null if the value is not finite.
  JsonWriter& Number(double value);
  // Writes enough digits to read the same float back.
  JsonWriter& Exact(float value);
  JsonWriter& Bool(bool value);

  const std::string& text() const { return text_; }

 private:
  JsonWriter& Open(char bracket);
  JsonWriter& Close(char bracket);
  // Writes the comma before the next item, if needed.
  void Separate();

  std::string text_;
  bool comma_due_ = false;
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_OUTPUT_JSON_WRITER_H_
