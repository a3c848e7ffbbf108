#ifndef SFMAMBA_BASE_RGB_IMAGE_H_
#define SFMAMBA_BASE_RGB_IMAGE_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"

namespace sfmamba::base {

// 8-bit RGB, rows tight.
struct RgbImage {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> data;  // [height, width, 3]
};

// Told of a picture that is being decoded: its first `rows` rows are as they
// will be. More and more each time. It throws nothing.
using RowsDecoded = absl::FunctionRef<void(const RgbImage& picture, int rows)>;

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_RGB_IMAGE_H_
