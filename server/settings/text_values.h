#ifndef SFMAMBA_SERVER_SETTINGS_TEXT_VALUES_H_
#define SFMAMBA_SERVER_SETTINGS_TEXT_VALUES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "google/protobuf/descriptor.h"

namespace sfmamba::server {

// The result of WithPlainValues(), which is text in protobuf's text format.
struct PlainText {
  // A value that was replaced. The numbers of lines and columns start at 0.
  struct Change {
    int line = 0;
    // The column in the new text where the new value ends.
    int column = 0;
    // The new value's length minus the old value's length.
    int longer = 0;
  };

  // Converts a column of the new text to a column of the original text.
  int OriginalColumn(int line, int column) const;

  std::string text;
  std::vector<Change> changes;
};

// Converts `text` to protobuf's text format. In `text`, durations and sizes are
// written as in flags, for example 5s or 32MiB, with or without quotes.
// `message` is the type of the message that `text` contains. Returns
// INVALID_ARGUMENT with line, column and field if a duration or size is
// malformed. Other errors are not reported, because protobuf's parser finds
// them.
absl::StatusOr<PlainText> WithPlainValues(
    const std::string& text, const google::protobuf::Descriptor& message);

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_SETTINGS_TEXT_VALUES_H_
