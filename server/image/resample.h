#ifndef SFMAMBA_SERVER_IMAGE_RESAMPLE_H_
#define SFMAMBA_SERVER_IMAGE_RESAMPLE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "base/decode_watch.h"

namespace sfmamba::image {

// A picture's new size, and the part of it that is wanted.
struct ResizeWindow {
  int width = 0;  // Of the whole picture, in pixels.
  int height = 0;
  int left = 0;  // Of the window, inside the picture.
  int top = 0;
  int columns = 0;
  int rows = 0;
};

// Resizes `rgb` [height, width, 3] as Pillow's bicubic filter does, bit for
// bit, and returns the window: [rows, columns, 3]. Only what the window needs
// is computed, so a large size with a small window is cheap. `watch` is asked
// after every few rows; once it has expired, the result is its status. Source:
// docs/network.md, "Preprocessing"; Pillow's published resampling.
absl::StatusOr<std::vector<uint8_t>> ResizeBicubic(
    const uint8_t* rgb, int width, int height, const ResizeWindow& window,
    const base::DecodeWatch& watch = base::DecodeWatch());

}  // namespace sfmamba::image

#endif  // SFMAMBA_SERVER_IMAGE_RESAMPLE_H_
