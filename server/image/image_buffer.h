#ifndef SFMAMBA_SERVER_IMAGE_IMAGE_BUFFER_H_
#define SFMAMBA_SERVER_IMAGE_IMAGE_BUFFER_H_

#include <cstdint>
#include <vector>

#include "server/image/pixel_pool.h"

namespace sfmamba::image {

// A model input made from one image. Exactly one of `pixels` and `values` is
// set.
struct ImageBuffer {
  int height = 0;  // In pixels.
  int width = 0;
  // RGB values. The shape is [3, height, width] if `planar` is true. Otherwise
  // the shape is [height, width, 3].
  Pixels pixels;
  bool planar = false;
  // Normalised RGB values. The shape is [3, height, width].
  std::vector<float> values;
  // The size of the picture or of the picture's crop before resizing.
  int original_height = 0;
  int original_width = 0;

  int64_t bytes() const { return pixels.size() + 4 * values.size(); }
};

}  // namespace sfmamba::image

#endif  // SFMAMBA_SERVER_IMAGE_IMAGE_BUFFER_H_
