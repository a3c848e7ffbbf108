#ifndef SFMAMBA_CLIENT_PICTURE_PICTURE_READER_H_
#define SFMAMBA_CLIENT_PICTURE_PICTURE_READER_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/picture/picture.h"

namespace sfmamba::client {

// Decodes a JPEG, PNG or still WebP, told apart by their first bytes, and turns
// it as its EXIF orientation says: the picture in whose pixels the server
// answers. Grey is expanded, CMYK converted, alpha dropped. With `min_side` a
// JPEG is decoded at a smaller scale where its sides stay at least that long.
// INVALID_ARGUMENT says what is wrong with the bytes.
absl::StatusOr<Picture> ReadPicture(absl::string_view bytes, int min_side = 0);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_PICTURE_PICTURE_READER_H_
