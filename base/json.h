#ifndef SFMAMBA_BASE_JSON_H_
#define SFMAMBA_BASE_JSON_H_

#include <string>

#include "absl/strings/string_view.h"

namespace sfmamba::base {

// Returns `text` as a JSON string with quotes. Each byte that is not part of a
// valid UTF-8 character becomes U+FFFD, so that the result is always valid.
std::string JsonString(absl::string_view text);

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_JSON_H_
