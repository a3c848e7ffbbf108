#ifndef SFMAMBA_SERVER_SETTINGS_TEXT_VALUES_H_
#define SFMAMBA_SERVER_SETTINGS_TEXT_VALUES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "google/protobuf/descriptor.h"

namespace sfmamba::server {

// A protobuf text whose durations and sizes have been rewritten for protobuf's
// parser.
struct PlainText {
  // A replaced value. Lines and columns start at 0.
  struct Change {
    int line = 0;
    int column = 0;  // End of the new value in the new text.
    int longer = 0;  // Length of the new value minus length of the old value.
  };

  // Converts a column of the new text to a column of the original text.
  int OriginalColumn(int line, int column) const;

  std::string text;
  std::vector<Change> changes;
};

// Rewrites durations such as "5s" and sizes such as "32MiB" for protobuf's
// parser. The text may write such values as in flags, with or without quotes.
// `message` is the type of the text. Returns INVALID_ARGUMENT with line, column
// and field if a duration or size is malformed. Protobuf's parser reports other
// mistakes.
absl::StatusOr<PlainText> WithPlainValues(
    const std::string& text, const google::protobuf::Descriptor& message);

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_SETTINGS_TEXT_VALUES_H_
