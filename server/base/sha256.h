#ifndef SFMAMBA_SERVER_BASE_SHA256_H_
#define SFMAMBA_SERVER_BASE_SHA256_H_

#include <string>

#include "absl/status/statusor.h"

namespace sfmamba::server {

// The SHA-256 of a file's bytes, in lower-case hexadecimal. NOT_FOUND if it
// cannot be read.
absl::StatusOr<std::string> FileSha256(const std::string& path);

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_BASE_SHA256_H_
