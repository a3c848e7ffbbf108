#include "client/picture/picture.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace sfmamba::client {

absl::Status CheckPictureSize(int64_t width, int64_t height) {
  if (std::min(width, height) >= 1 &&
      std::max(width, height) <= kMaxPictureSide &&
      width * height <= kMaxPicturePixels) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(width, " x ", height, " pixels, expected sides of 1 to ",
                   kMaxPictureSide, " and at most ", kMaxPicturePixels));
}

// Source: EXIF 2.3, Orientation: where the stored first row and column belong.
Picture Orient(Picture stored, int orientation) {
  if (orientation <= 1 || orientation > 8) return stored;
  const bool swap_sides = orientation >= 5;
  const bool flip_x = orientation == 2 || orientation == 3 ||
                      orientation == 7 || orientation == 8;
  const bool flip_y = orientation == 3 || orientation == 4 ||
                      orientation == 6 || orientation == 7;
  Picture seen;
  seen.width = swap_sides ? stored.height : stored.width;
  seen.height = swap_sides ? stored.width : stored.height;
  seen.data.resize(stored.data.size());
  uint8_t* out = seen.data.data();
  for (int y = 0; y < seen.height; ++y) {
    for (int x = 0; x < seen.width; ++x, out += 3) {
      const int across = swap_sides ? y : x;  // In the stored picture.
      const int down = swap_sides ? x : y;
      const size_t column = flip_x ? stored.width - 1 - across : across;
      const size_t row = flip_y ? stored.height - 1 - down : down;
      memcpy(out, &stored.data[3 * (row * stored.width + column)], 3);
    }
  }
  return seen;
}

}  // namespace sfmamba::client
