#ifndef SFMAMBA_CLIENT_PICTURE_PICTURE_H_
#define SFMAMBA_CLIENT_PICTURE_PICTURE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"

namespace sfmamba::client {

// The largest pictures and masks that are decoded: the server's default limits.
constexpr int kMaxPictureSide = 16384;
constexpr int64_t kMaxPicturePixels = 50'000'000;

// 8-bit RGB, rows tight.
struct Picture {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> data;  // [height, width, 3]
};

// INVALID_ARGUMENT unless both sides are positive and within the limits above.
absl::Status CheckPictureSize(int64_t width, int64_t height);

// The stored picture as it is to be seen; `orientation` is EXIF's, 1..8.
Picture Orient(Picture stored, int orientation);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_PICTURE_PICTURE_H_
