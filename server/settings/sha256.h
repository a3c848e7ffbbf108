#ifndef SFMAMBA_SERVER_SETTINGS_SHA256_H_
#define SFMAMBA_SERVER_SETTINGS_SHA256_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace sfmamba::server {

// Returns the SHA-256 of the files' concatenated bytes in lower-case
// hexadecimal. Returns NOT_FOUND if a file cannot be read.
absl::StatusOr<std::string> FilesSha256(absl::Span<const std::string> paths);

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_SETTINGS_SHA256_H_
