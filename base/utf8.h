#ifndef SFMAMBA_BASE_UTF8_H_
#define SFMAMBA_BASE_UTF8_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace sfmamba::base {

// Bytes of the UTF-8 character that `text` begins with; 0 if it is not one.
int Utf8CharacterLength(absl::string_view text);

// Characters of `text`; -1 if it is not UTF-8.
int Utf8Length(absl::string_view text);

// `text` with U+FFFD in place of each byte that is of no UTF-8 character.
std::string ToUtf8(absl::string_view text);

// `text` cut to at most `max_bytes`, between two characters if it is UTF-8.
absl::string_view Utf8Prefix(absl::string_view text, size_t max_bytes);

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_UTF8_H_
