#ifndef SFMAMBA_SERVER_IMAGE_IMAGE_BUFFER_H_
#define SFMAMBA_SERVER_IMAGE_IMAGE_BUFFER_H_

#include <cstdint>
#include <vector>

#include "server/image/pixel_pool.h"

namespace sfmamba::image {

// One image as the model takes it. Exactly one of `pixels` and `values` is set.
struct ImageBuffer {
  int height = 0;  // In pixels.
  int width = 0;
  Pixels pixels;              // [height, width, 3] RGB, unless planar.
  bool planar = false;        // Whether `pixels` are [3, height, width].
  std::vector<float> values;  // [3, height, width], normalised.
  // The size of the picture, or of its crop, before it was resized.
  int original_height = 0;
  int original_width = 0;

  int64_t bytes() const { return pixels.size() + 4 * values.size(); }
};

}  // namespace sfmamba::image

#endif  // SFMAMBA_SERVER_IMAGE_IMAGE_BUFFER_H_
