#ifndef SFMAMBA_BASE_MASK_H_
#define SFMAMBA_BASE_MASK_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

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

// The set pixels of consecutive lines, which are rows or columns of a mask.
struct LineRuns {
  // The edges of one line after those of the other. A line has an even number,
  // ascending: the pixels from its first edge up to its second are set, those
  // from its third up to its fourth, and so on.
  std::vector<int> edges;
  std::vector<size_t> line_ends;  // Exclusive, in `edges`, of each line.

  int lines() const { return static_cast<int>(line_ends.size()); }
  absl::Span<const int> line(int i) const {
    const size_t begin = i == 0 ? 0 : line_ends[i - 1];
    return absl::MakeConstSpan(edges).subspan(begin, line_ends[i] - begin);
  }
  void clear() {
    edges.clear();
    line_ends.clear();
  }
};

// A mask over a picture whose set pixels are computed when they are asked for,
// some lines at a time. Thread-safe.
class LineMask {
 public:
  // Pixels outside of it are not set.
  struct Bounds {
    int left = 0, top = 0, width = 0, height = 0;
  };

  virtual ~LineMask() = default;

  virtual Bounds bounds() const = 0;
  // Appends the rows [begin, end), or the columns, which are inside bounds().
  // All numbers count the picture's pixels.
  virtual void AddRows(int begin, int end, LineRuns* runs) const = 0;
  virtual void AddColumns(int begin, int end, LineRuns* runs) const = 0;
};

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_MASK_H_
