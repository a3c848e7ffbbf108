#ifndef SFMAMBA_BASE_RGB_IMAGE_H_
#define SFMAMBA_BASE_RGB_IMAGE_H_

#include <cstdint>
#include <vector>

namespace sfmamba::base {

// 8-bit RGB, rows tight.
struct RgbImage {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> data;  // [height, width, 3]
};

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_RGB_IMAGE_H_
