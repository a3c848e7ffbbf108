#ifndef SFMAMBA_SERVER_REPOSITORY_JSON_TEXT_H_
#define SFMAMBA_SERVER_REPOSITORY_JSON_TEXT_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace sfmamba::repository {

// Returns OK if `text` is a JSON object with at most 20 levels of nested
// objects and lists. Comments, trailing commas, NaN and Infinity are not valid
// JSON. Otherwise returns INVALID_ARGUMENT with line, column and the text found
// there. `what` names the file in error messages.
absl::Status CheckJsonObject(absl::string_view what, absl::string_view text);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_JSON_TEXT_H_
