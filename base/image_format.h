#ifndef SFMAMBA_BASE_IMAGE_FORMAT_H_
#define SFMAMBA_BASE_IMAGE_FORMAT_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace sfmamba::base {

enum class ImageFormat { kJpeg, kPng, kWebp };

// Returns the format whose signature `bytes` begins with. Returns nullopt if no
// signature fits. The file may still be corrupt or of a variant that is not
// decoded.
std::optional<ImageFormat> FormatOf(absl::string_view bytes);

// Returns UNIMPLEMENTED with a message that says what the file is, for example
// "this is a GIF; JPEG, PNG and WebP are taken". Requires that FormatOf()
// returns nullopt.
absl::Status ForeignFormat(absl::string_view bytes);

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_IMAGE_FORMAT_H_
