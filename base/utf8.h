#ifndef SFMAMBA_BASE_UTF8_H_
#define SFMAMBA_BASE_UTF8_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace sfmamba::base {

// Returns the number of bytes of the UTF-8 character that `text` begins with.
// Returns 0 if `text` does not begin with a valid character.
int Utf8CharacterLength(absl::string_view text);

// Returns the number of characters of `text`, or -1 if it is not UTF-8.
int Utf8Length(absl::string_view text);

// Returns `text` with U+FFFD in place of each byte that is not part of a valid
// UTF-8 character.
std::string ToUtf8(absl::string_view text);

// Returns the beginning of `text`, at most `max_bytes` long. If `text` is
// UTF-8, it is cut only between characters.
absl::string_view Utf8Prefix(absl::string_view text, size_t max_bytes);

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_UTF8_H_
