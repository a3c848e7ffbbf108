#ifndef SFMAMBA_CLIENT_PICTURE_PICTURE_READER_H_
#define SFMAMBA_CLIENT_PICTURE_PICTURE_READER_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/picture/picture.h"

namespace sfmamba::client {

// Decodes a JPEG, a PNG or a WebP without animation. The first bytes tell the
// format. The picture is rotated as its EXIF orientation says, because the
// server's answers refer to the rotated picture. Grey is expanded, CMYK is
// converted and alpha is dropped. If `min_side` is not 0, a JPEG may be decoded
// at a smaller scale at which both sides are still at least `min_side` pixels.
// Returns INVALID_ARGUMENT with a reason if the bytes cannot be decoded.
absl::StatusOr<Picture> ReadPicture(absl::string_view bytes, int min_side = 0);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_PICTURE_PICTURE_READER_H_
