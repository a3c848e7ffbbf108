#ifndef SFMAMBA_BASE_IMAGE_FORMAT_H_
#define SFMAMBA_BASE_IMAGE_FORMAT_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace sfmamba::base {

enum class ImageFormat { kJpeg, kPng, kWebp };

// Returns the format that the first bytes of a file are those of; it may be a
// kind that is not decoded, or broken. Unset for any other file.
std::optional<ImageFormat> FormatOf(absl::string_view bytes);

// Returns UNIMPLEMENTED that says what the file is: "this is a GIF; JPEG, PNG
// and WebP are taken". Requires that FormatOf() is unset.
absl::Status ForeignFormat(absl::string_view bytes);

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_IMAGE_FORMAT_H_
