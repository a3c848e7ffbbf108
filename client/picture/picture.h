#ifndef SFMAMBA_CLIENT_PICTURE_PICTURE_H_
#define SFMAMBA_CLIENT_PICTURE_PICTURE_H_

#include <cstdint>
#include <limits>

#include "base/image_header.h"
#include "base/rgb_image.h"

namespace sfmamba::client {

using Picture = base::RgbImage;

// The largest pictures and masks that are decoded: those of the server's
// default limits. Their bytes are in memory already and may be any number.
inline base::ImageLimits PictureLimits() {
  base::ImageLimits limits;
  limits.max_bytes = std::numeric_limits<int64_t>::max();
  return limits;
}

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_PICTURE_PICTURE_H_
