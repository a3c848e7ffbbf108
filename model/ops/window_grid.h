#ifndef SFMAMBA_MODEL_OPS_WINDOW_GRID_H_
#define SFMAMBA_MODEL_OPS_WINDOW_GRID_H_

#include <cstdint>

namespace sfmamba::ops {

// The partition of a map into windows of one size. All sizes are in tokens. If
// the window size does not divide the map size, the last windows extend beyond
// the map on the right and at the bottom.
struct WindowGrid {
  int64_t map_height = 0, map_width = 0;
  int64_t height = 0, width = 0;  // The size of a window.

  int64_t rows() const { return (map_height + height - 1) / height; }
  int64_t columns() const { return (map_width + width - 1) / width; }
  int64_t windows() const { return rows() * columns(); }
};

// The additional token at each end of a window.
enum class WindowEnds {
  kNone,
  kUnset,  // A token that is not initialised.
  kMean,   // The mean of the window's tokens.
};

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_WINDOW_GRID_H_
