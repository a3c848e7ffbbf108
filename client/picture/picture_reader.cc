#include "client/picture/picture_reader.h"

#include "absl/status/status.h"
#include "base/image_decoder.h"

namespace sfmamba::client {

absl::StatusOr<Picture> ReadPicture(absl::string_view bytes, int min_side) {
  absl::StatusOr<Picture> picture = base::DecodeImage(
      bytes, PictureLimits(), /*apply_orientation=*/true, min_side);
  if (picture.ok()) return picture;
  return absl::InvalidArgumentError(picture.status().message());
}

}  // namespace sfmamba::client
