#ifndef SFMAMBA_BASE_JSON_H_
#define SFMAMBA_BASE_JSON_H_

#include <string>

#include "absl/strings/string_view.h"

namespace sfmamba::base {

// `text` as a JSON string, quotes included. Bytes that are not UTF-8 become
// U+FFFD, so that the result is always valid.
std::string JsonString(absl::string_view text);

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_JSON_H_
