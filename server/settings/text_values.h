#ifndef SFMAMBA_SERVER_SETTINGS_TEXT_VALUES_H_
#define SFMAMBA_SERVER_SETTINGS_TEXT_VALUES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "google/protobuf/descriptor.h"

namespace sfmamba::server {

// The result of WithPlainValues(), which is text in protobuf's text format.
struct PlainText {
  // A value that was replaced. Lines and columns start at 0.
  struct Change {
    int line = 0;
    int column = 0;  // The end of the new value in the new text.
    int longer = 0;  // The new length minus the old length.
  };

  // Converts a column of the new text to a column of the original text.
  int OriginalColumn(int line, int column) const;

  std::string text;
  std::vector<Change> changes;
};

// Rewrites durations such as "5s" and sizes such as "32MiB" for protobuf's
// parser. In `text`, these values are written as in flags, with or without
// quotes. `message` is the type of the message. Returns INVALID_ARGUMENT with
// line, column and field if a duration or size is malformed. Other errors are
// left to protobuf's parser.
absl::StatusOr<PlainText> WithPlainValues(
    const std::string& text, const google::protobuf::Descriptor& message);

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_SETTINGS_TEXT_VALUES_H_
