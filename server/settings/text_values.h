#ifndef SFMAMBA_SERVER_SETTINGS_TEXT_VALUES_H_
#define SFMAMBA_SERVER_SETTINGS_TEXT_VALUES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "google/protobuf/descriptor.h"

namespace sfmamba::server {

// A text in protobuf's text format whose durations and sizes are as protobuf
// reads them.
struct PlainText {
  // A value that was replaced. Lines and columns count from 0.
  struct Change {
    int line = 0;
    int column = 0;  // In the new text, behind the new value.
    int longer = 0;  // By how many characters the new value is.
  };

  // The column in the original text.
  int OriginalColumn(int line, int column) const;

  std::string text;
  std::vector<Change> changes;
};

// Replaces the values of settings of a `message` that are written as in flags:
// durations such as "5s" and sizes such as "32MiB", with or without quotes.
// INVALID_ARGUMENT with line, column and field for a value that is neither such
// a text nor one that protobuf reads. Other mistakes are left to protobuf's
// parser.
absl::StatusOr<PlainText> WithPlainValues(
    const std::string& text, const google::protobuf::Descriptor& message);

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_SETTINGS_TEXT_VALUES_H_
