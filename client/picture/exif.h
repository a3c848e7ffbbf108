#ifndef SFMAMBA_CLIENT_PICTURE_EXIF_H_
#define SFMAMBA_CLIENT_PICTURE_EXIF_H_

#include "absl/strings/string_view.h"

namespace sfmamba::client {

// The orientation, 1..8, in an EXIF block: a TIFF structure, with or without
// "Exif\0\0" before it. 1 where there is none or the block is corrupt.
int OrientationOf(absl::string_view exif);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_PICTURE_EXIF_H_
