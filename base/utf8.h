#ifndef SFMAMBA_BASE_UTF8_H_
#define SFMAMBA_BASE_UTF8_H_

#include "absl/strings/string_view.h"

namespace sfmamba::base {

// Bytes of the UTF-8 character that `text` begins with; 0 if it is not one.
int Utf8CharacterLength(absl::string_view text);

// Characters of `text`; -1 if it is not UTF-8.
int Utf8Length(absl::string_view text);

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_UTF8_H_
