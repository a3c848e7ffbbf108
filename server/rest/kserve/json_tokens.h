#ifndef SFMAMBA_SERVER_REST_KSERVE_JSON_TOKENS_H_
#define SFMAMBA_SERVER_REST_KSERVE_JSON_TOKENS_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace sfmamba::rest {

// The most bytes of a string, which may be a picture in base64, and of another
// word, such as a number. A parser holds a word several times.
inline constexpr size_t kMaxJsonStringBytes = 16 << 20;
inline constexpr size_t kMaxJsonWordBytes = 1 << 10;

// INVALID_ARGUMENT, MALFORMED_MESSAGE, if a string or another word is longer,
// as far as the text is JSON. Takes no memory.
absl::Status CheckJsonTokens(absl::string_view json);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_KSERVE_JSON_TOKENS_H_
