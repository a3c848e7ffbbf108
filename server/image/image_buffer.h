#ifndef SFMAMBA_SERVER_IMAGE_IMAGE_BUFFER_H_
#define SFMAMBA_SERVER_IMAGE_IMAGE_BUFFER_H_

#include <cstdint>
#include <vector>

#include "server/image/pixel_pool.h"

namespace sfmamba::image {

// One image as the model takes it. Exactly one of pixels and values is filled.
struct ImageBuffer {
  int height = 0;  // Pixels.
  int width = 0;
  Pixels pixels;              // [height, width, 3] RGB, or its planes.
  bool planar = false;        // Whether `pixels` are [3, height, width].
  std::vector<float> values;  // [3, height, width], normalised.
  // Size of the picture, or its crop, that the input was resized from.
  int original_height = 0;
  int original_width = 0;

  int64_t bytes() const { return pixels.size() + 4 * values.size(); }
};

}  // namespace sfmamba::image

#endif  // SFMAMBA_SERVER_IMAGE_IMAGE_BUFFER_H_
