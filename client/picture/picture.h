#ifndef SFMAMBA_CLIENT_PICTURE_PICTURE_H_
#define SFMAMBA_CLIENT_PICTURE_PICTURE_H_

#include <cstdint>
#include <limits>

#include "base/image_header.h"
#include "base/rgb_image.h"

namespace sfmamba::client {

using Picture = base::RgbImage;

// Returns the limits of pictures and masks to decode. They equal the server's
// defaults, except that the encoded size is not limited, because the encoded
// bytes are in memory already.
inline base::ImageLimits PictureLimits() {
  base::ImageLimits limits;
  limits.max_bytes = std::numeric_limits<int64_t>::max();
  return limits;
}

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_PICTURE_PICTURE_H_
