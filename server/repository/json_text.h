#ifndef SFMAMBA_SERVER_REPOSITORY_JSON_TEXT_H_
#define SFMAMBA_SERVER_REPOSITORY_JSON_TEXT_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace sfmamba::repository {

// OK if `text` is a JSON object of at most 20 levels of objects and lists.
// Comments, trailing commas, NaN and Infinity are not JSON. INVALID_ARGUMENT
// with line, column and what was found there; `what` names the text.
absl::Status CheckJsonObject(absl::string_view what, absl::string_view text);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_JSON_TEXT_H_
