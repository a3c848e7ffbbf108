#ifndef SFMAMBA_SERVER_IMAGE_PNG_ENCODER_H_
#define SFMAMBA_SERVER_IMAGE_PNG_ENCODER_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace sfmamba::image {

// A grey PNG of `bit_depth` 1, 8 or 16, with libpng's fastest compression and
// no filter, which suits maps of few values. `fill_row` writes row `y` as the
// file holds it: 8 pixels a byte, the leftmost in the highest bit, a byte a
// pixel, or two, the high byte first. It must not throw. INTERNAL if libpng
// fails; sides are positive.
absl::StatusOr<std::string> EncodeGreyPng(
    int width, int height, int bit_depth,
    absl::FunctionRef<void(int y, uint8_t* row)> fill_row);

}  // namespace sfmamba::image

#endif  // SFMAMBA_SERVER_IMAGE_PNG_ENCODER_H_
