#ifndef SFMAMBA_CLIENT_PICTURE_JPEG_READER_H_
#define SFMAMBA_CLIENT_PICTURE_JPEG_READER_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/picture/picture.h"

namespace sfmamba::client {

// Decodes a JPEG of 8 bits a sample, as stored: grey is expanded, CMYK
// converted without a colour profile. `exif` gets its last EXIF block, if it
// has one. INVALID_ARGUMENT for anything else, for truncated or corrupt bytes
// and for sizes beyond picture.h's limits.
absl::StatusOr<Picture> ReadJpeg(absl::string_view bytes, std::string* exif);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_PICTURE_JPEG_READER_H_
