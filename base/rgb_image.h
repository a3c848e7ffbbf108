#ifndef SFMAMBA_BASE_RGB_IMAGE_H_
#define SFMAMBA_BASE_RGB_IMAGE_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"

namespace sfmamba::base {

// 8-bit RGB. Rows follow each other without padding.
struct RgbImage {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> data;  // [height, width, 3]
};

// Called while a picture is being decoded, when its first `rows` rows are
// final. `rows` increases from call to call. Must not throw.
using RowsDecoded = absl::FunctionRef<void(const RgbImage& picture, int rows)>;

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_RGB_IMAGE_H_
