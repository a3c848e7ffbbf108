#ifndef SFMAMBA_BASE_MASK_H_
#define SFMAMBA_BASE_MASK_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sfmamba::base {

// A mask over a picture. `data` covers the rectangle at (left, top); pixels
// outside of it are not set.
struct Mask {
  int left = 0, top = 0, width = 0, height = 0;  // In the picture's pixels.
  std::vector<uint8_t> data;                     // [height, width] 0 or 1

  // Whether the picture's pixel (x, y) is set.
  bool At(int x, int y) const {
    return x >= left && x < left + width && y >= top && y < top + height &&
           data[size_t{1} * (y - top) * width + x - left] != 0;
  }

  // The number of pixels that are set.
  int64_t Area() const { return std::count(data.begin(), data.end(), 1); }
};

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_MASK_H_
