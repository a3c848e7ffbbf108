#ifndef SFMAMBA_SERVER_REPOSITORY_JSON_TEXT_H_
#define SFMAMBA_SERVER_REPOSITORY_JSON_TEXT_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace sfmamba::repository {

// Checks that `text` is a JSON object with at most 20 levels of nested objects
// and lists. Comments, trailing commas, NaN and Infinity are not valid JSON.
// Returns INVALID_ARGUMENT with line and column of the first error and the text
// at this position. `what` identifies the file in error messages.
absl::Status CheckJsonObject(absl::string_view what, absl::string_view text);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_JSON_TEXT_H_
